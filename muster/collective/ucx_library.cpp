#include "muster/collective/ucx_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "muster/collective/collective.h"

namespace muster::collective {
namespace {

constexpr const char* plugin_name = "muster_ucx.so";

// The folder of the program or library that holds this code.
std::filesystem::path own_folder() {
  Dl_info info{};
  std::error_code ignored;
  std::filesystem::path file;
  if (::dladdr(reinterpret_cast<const void*>(&own_folder), &info) != 0 && info.dli_fname != nullptr)
    file = info.dli_fname;
  if (!file.has_parent_path()) file = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return std::filesystem::canonical(file, ignored).parent_path();
}

// In the build tree or installation around this code; else the loader's own folders are left.
std::string plugin_file() {
  std::error_code ignored;
  const std::filesystem::path own = own_folder();
  for (std::filesystem::path folder = own; folder.has_relative_path(); folder = folder.parent_path())
    for (const std::filesystem::path& file : {folder / plugin_name, folder / "lib" / "muster" / plugin_name})
      if (std::filesystem::exists(file, ignored)) return file.string();
  return plugin_name;
}

Result<const UcxLibrary*> load_ucx() {
  const std::string file = plugin_file();
  void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return fail(Code::not_found,
                fmt::format("no UCX: {}; {} is built where libucx-dev is installed, and needs libucx0",
                            ::dlerror(), plugin_name));
  const auto library = reinterpret_cast<const UcxLibrary* (*)()>(::dlsym(handle, "muster_ucx_library"));
  if (library == nullptr || library()->version != ucx_port_version)
    return fail(Code::not_found, fmt::format("{} belongs to another version of Muster", file));
  return library();
}

}  // namespace

const Result<const UcxLibrary*>& ucx_library() {
  static const Result<const UcxLibrary*> library = load_ucx();
  return library;
}

bool is_rdma(std::string_view device) {
  static constexpr std::array others{"self", "tcp", "posix", "sysv", "xpmem", "cma", "knem"};
  const std::string_view transport = device.substr(0, device.find('/'));
  return std::ranges::none_of(others, [&](std::string_view other) { return transport == other; });
}

Result<UcxState> ucx_state() {
  MUSTER_TRY(const UcxLibrary* library, ucx_library());
  MUSTER_TRY(std::vector<std::string> devices, library->devices());
  const bool has_rdma = std::ranges::any_of(devices, is_rdma);
  return UcxState{.name = library->name, .devices = std::move(devices), .has_rdma = has_rdma};
}

}  // namespace muster::collective
