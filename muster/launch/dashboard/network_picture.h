// Network picture: what rank 0 keeps of the network in the folder of a run, as the page is told of it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "muster/base/base.h"

namespace muster::launch {

inline constexpr const char* picture_name = "network.svg";  // muster/train/network_picture.cpp
inline constexpr const char* picture_text_name = "network.txt";

class NetworkPicture {
 public:
  explicit NetworkPicture(std::string folder) : folder_(std::move(folder)) {}

  // Whether it has changed since it was asked before; false as long as there is none.
  bool look();
  // {"version": "1700000000000000000", "has_picture": true, "text": "..."}; empty: there is none yet.
  const std::string& told() const { return told_; }
  // The SVG.
  Result<std::string> svg() const;

 private:
  std::string folder_;
  std::int64_t changed_ns_ = 0;
  std::string told_ = {};
};

}  // namespace muster::launch
