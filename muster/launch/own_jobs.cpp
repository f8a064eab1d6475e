#include "muster/launch/own_jobs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace muster::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t environ_bytes_max = 1 << 20;

// "NAME=value", each with a zero behind it.
std::string environ_of(const fs::path& process) {
  const net::Descriptor file(::open((process / "environ").c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || status.st_uid != ::geteuid()) return {};
  std::string text(environ_bytes_max, '\0');
  std::size_t size = 0;
  ssize_t got = 0;
  while (size < text.size() && (got = ::read(file.get(), text.data() + size, text.size() - size)) > 0)
    size += static_cast<std::size_t>(got);
  text.resize(size);
  return text;
}

std::string value_in(std::string_view environ_text, std::string_view name) {
  const std::string begin = fmt::format("{}=", name);
  while (!environ_text.empty()) {
    const auto end = std::min(environ_text.find('\0'), environ_text.size());
    const std::string_view entry = environ_text.substr(0, end);
    if (entry.starts_with(begin)) return std::string(entry.substr(begin.size()));
    environ_text.remove_prefix(std::min(end + 1, environ_text.size()));
  }
  return {};
}

// "localhost" and "127.0.0.1", a name and its address.
bool is_same_host(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto ips = net::resolve(a), others = net::resolve(b);
  return ips && others && std::ranges::any_of(*ips, [&](const std::string& ip) {
           return std::ranges::find(*others, ip) != others->end();
         });
}

}  // namespace

std::optional<std::string> token_file_of_own_job(const net::HostPort& scheduler) {
  const std::string port = std::to_string(scheduler.port);
  std::error_code error;
  for (const auto& process : fs::directory_iterator("/proc", error)) {
    if (process.path().filename().string().find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string text = environ_of(process.path());
    const std::string token_file = value_in(text, "MUSTER_RUN_TOKEN_FILE");
    if (token_file.empty() || value_in(text, "MS_SCHED_PORT") != port) continue;
    const bool is_there = ::access(token_file.c_str(), R_OK) == 0;
    if (is_there && is_same_host(value_in(text, "MS_SCHED_HOST"), scheduler.host)) return token_file;
  }
  return std::nullopt;
}

}  // namespace muster::launch
