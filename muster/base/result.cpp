#include "muster/base/result.h"

#include <fmt/format.h>

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

tl::unexpected<Error> fail_errno(std::string_view what, int error_number) {
  const Code code = error_number == ENOENT ? Code::not_found : Code::io;
  return fail(code, fmt::format("{}: {}", what, std::generic_category().message(error_number)));
}

}  // namespace muster
