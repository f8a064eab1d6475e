#include "muster/tensor/primitives.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "muster/tensor/cpu.h"
#include "muster/tensor/wide_products.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr const char* file_name = "muster_onednn.so";
// How far above this code's own file its build or install tree may begin.
constexpr int levels_max = 5;

// The program or library that holds this code.
fs::path own_file() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_file), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code ignored;
  // A program that was found in PATH is named without its folder.
  const fs::path named = fs::path(info.dli_fname).has_parent_path()
                             ? fs::path(info.dli_fname)
                             : fs::read_symlink("/proc/self/exe", ignored);
  return fs::canonical(named, ignored);
}

// Beside this code, or in the tree around it: a build tree, an install prefix, a Python package.
fs::path find() {
  std::error_code ignored;
  fs::path folder = own_file().parent_path();
  if (folder.empty()) return {};
  if (fs::path beside = folder / file_name; fs::exists(beside, ignored)) return beside;
  for (int level = 0; level < levels_max && folder.has_relative_path(); ++level) {
    if (fs::path there = folder / "lib" / "muster" / file_name; fs::exists(there, ignored)) return there;
    folder = folder.parent_path();
  }
  return {};
}

const PrimitiveLibrary* load() {
  const fs::path found = find();
  // By its name alone the loader looks where the program was linked to look (cmake/MusterLibrary.cmake), in
  // LD_LIBRARY_PATH and where the system keeps libraries.
  const fs::path file = found.empty() ? fs::path(file_name) : found;
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    log::warning(
        fmt::format("no oneDNN: {}; convolutions, matrix products and pooling use the reference "
                    "kernels, many times slower. {} is in lib/muster of Muster's build or "
                    "installation: name that folder in LD_LIBRARY_PATH",
                    dlerror(), file_name));
    return nullptr;
  }
  using Table = const PrimitiveLibrary* (*)();
  const auto table = reinterpret_cast<Table>(dlsym(handle, "muster_primitive_library"));
  const PrimitiveLibrary* const library = table == nullptr ? nullptr : table();
  if (library != nullptr && library->version == primitive_table_version)
    return this_processor().slow_bfloat16 ? &with_wide_products(*library) : library;
  log::warning(fmt::format("{} belongs to another version of Muster; the reference kernels serve instead",
                           file.string()));
  return nullptr;
}

}  // namespace

const PrimitiveLibrary* primitive_library() {
  static const PrimitiveLibrary* const library = load();
  return library;
}

}  // namespace muster
