#include "muster/tensor/primitives.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>

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

// Where `tree` keeps it when it is a build tree, an install prefix or a Python environment.
fs::path find_in(const fs::path& tree) {
  std::error_code ignored;
  if (fs::path there = tree / "lib" / "muster" / file_name; fs::exists(there, ignored)) return there;
  for (const fs::directory_entry& entry : fs::directory_iterator(tree / "lib", ignored)) {
    if (!entry.path().filename().string().starts_with("python3")) continue;
    if (fs::path there = entry.path() / "site-packages" / "muster" / file_name; fs::exists(there, ignored))
      return there;
  }
  return {};
}

// Beside this code (in a Python package), or in the tree around it.
fs::path find() {
  std::error_code ignored;
  fs::path folder = own_file().parent_path();
  if (folder.empty()) return {};
  if (fs::path beside = folder / file_name; fs::exists(beside, ignored)) return beside;
  for (int level = 0; level < levels_max && folder.has_relative_path(); ++level) {
    if (fs::path there = find_in(folder); !there.empty()) return there;
    folder = folder.parent_path();
  }
  return {};
}

const PrimitiveLibrary* load() {
  const fs::path file = find();
  if (file.empty()) return nullptr;
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    log::warning(fmt::format("{}; the reference kernels serve instead, many times slower", dlerror()));
    return nullptr;
  }
  using Table = const PrimitiveLibrary* (*)();
  const auto table = reinterpret_cast<Table>(dlsym(handle, "muster_primitive_library"));
  const PrimitiveLibrary* const library = table == nullptr ? nullptr : table();
  if (library != nullptr && library->version == primitive_table_version) return library;
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
