// Tensors in the format of safetensors (docs/formats/recovery-point.md): a bounded JSON header, then the
// elements, without holes. Files of other programs are read too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/checkpoint/format.h"
#include "muster/checkpoint/storage.h"

namespace muster::checkpoint::safetensors {

inline constexpr std::string_view extension = ".safetensors";  // safetensors_extension of store.h

// One tensor of a file: its elements are the file's bytes from `begin` to `end`.
struct Place {
  std::string name = {};
  DType dtype = DType::float32;
  Shape shape = {};
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

using Metadata = std::map<std::string, std::string>;  // texts of the writer's

struct Header {
  std::vector<Place> places = {};  // as the elements lie
  Metadata metadata = {};
  std::string bytes = {};  // of the file, before the first element
};

// Where the entries will lie: greater elements first, so that all are aligned, otherwise in their order.
// Fails on names that are empty or there twice or no UTF-8, and on tensors whose elements are elsewhere.
Result<Header> plan(std::span<const Entry> entries, const Metadata& metadata = {});
// The same of tensors that are not at hand: names, dtypes and shapes count.
Result<Header> plan(std::vector<Place> places, const Metadata& metadata = {});

// The header of a file, checked: no overlap, no hole, all within the file. Costs as much memory as the
// header. Errors begin with the file's name.
Result<Header> read_header(const InputFile& file, const std::string& path);
// The elements of one of its places.
Result<Tensor> read_tensor(const InputFile& file, const Place& place);

// Durable, as checkpoint::save.
Result<> save(const std::string& path, std::span<const Entry> entries, Files& files = real_files(),
              const Metadata& metadata = {});

}  // namespace muster::checkpoint::safetensors
