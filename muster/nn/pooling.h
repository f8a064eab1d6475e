// Pools: windows of an image become one number. All take (N, C, H, W) or (C, H, W).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "muster/nn/cell.h"
#include "muster/nn/windows.h"

namespace muster::nn {

// What the pools share.
class Pool2d : public Cell {
 public:
  Values construct(std::span<const Value> inputs) override;
  std::string settings() const override;

 protected:
  Pool2d(std::string class_name, Window window, bool ceil_mode);
  // Of (N, C, H, W).
  virtual Value pooled(const Value& x, graph::Attributes attributes) const = 0;
  const Window& window() const { return window_; }

 private:
  Window window_;
  bool ceil_mode_;
};

struct MaxPool2dOptions {
  Size2d kernel_size = 1;
  Size2d stride = 1;
  PadMode pad_mode = PadMode::valid;
  Padding padding = 0;  // at most half the kernel; what is added is never the greatest
  bool ceil_mode = false;
};

// The greatest of each window.
class MaxPool2d : public Pool2d {
 public:
  explicit MaxPool2d(MaxPool2dOptions options = {});

 protected:
  Value pooled(const Value& x, graph::Attributes attributes) const override;
};

struct AvgPool2dOptions {
  Size2d kernel_size = 1;
  Size2d stride = 1;
  PadMode pad_mode = PadMode::valid;
  Padding padding = 0;  // at most half the kernel
  bool ceil_mode = false;
  bool count_include_pad = true;  // with PadMode::pad; what `same` adds is never counted
  std::optional<std::int64_t> divisor_override = {};
};

// The mean of each window, or its sum / divisor_override.
class AvgPool2d : public Pool2d {
 public:
  explicit AvgPool2d(AvgPool2dOptions options = {});

 protected:
  Value pooled(const Value& x, graph::Attributes attributes) const override;

 private:
  bool counts_padding_;
  std::optional<std::int64_t> divisor_;
};

// Means over a grid of output_size windows that cover the image evenly: window i of n along an axis of size s
// is [floor(i s / n), ceil((i + 1) s / n)). A size that is absent stays that of the input.
class AdaptiveAvgPool2d : public Cell {
 public:
  AdaptiveAvgPool2d(std::optional<std::int64_t> height, std::optional<std::int64_t> width);
  explicit AdaptiveAvgPool2d(std::int64_t both) : AdaptiveAvgPool2d(both, both) {}
  Values construct(std::span<const Value> inputs) override;
  std::string settings() const override;

 private:
  std::optional<std::int64_t> height_;
  std::optional<std::int64_t> width_;
};

}  // namespace muster::nn
