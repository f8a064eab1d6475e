#include "muster/base/result.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <system_error>

namespace muster {

std::string_view to_string(Code code) {
  switch (code) {
    case Code::invalid_argument:
      return "invalid argument";
    case Code::not_found:
      return "not found";
    case Code::not_provided:
      return "not provided";
    case Code::refused:
      return "refused";
    case Code::timeout:
      return "timeout";
    case Code::peer_lost:
      return "peer lost";
    case Code::aborted:
      return "aborted";
    case Code::corrupt:
      return "corrupt";
    case Code::io:
      return "io";
    case Code::internal:
      return "internal";
  }
  return "unknown";
}

namespace {

// Too many open files are seldom the fault of the call that wants one more.
std::string hint_for(int error_number) {
  rlimit limit{};
  if (error_number != EMFILE || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return "";
  return fmt::format(
      " (all {} that this process may have are open; ulimit -n before its start allows up to {}, and root "
      "more)",
      limit.rlim_cur, limit.rlim_max);
}

}  // namespace

tl::unexpected<Error> fail_errno(std::string_view what, int error_number) {
  const Code code = error_number == ENOENT ? Code::not_found : Code::io;
  return fail(code, fmt::format("{}: {}{}", what, std::generic_category().message(error_number),
                                hint_for(error_number)));
}

}  // namespace muster
