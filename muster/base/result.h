// Failures of the world as values: Result<T> holds a T or an Error that says what happened, to whom, what to
// try.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace muster {

enum class Code {
  invalid_argument,  // the caller or the user gave a value that cannot be used
  not_found,         // a file, a name or a host does not exist
  not_provided,      // a known feature that this version does not have
  refused,           // the other side said no, with a reason
  timeout,           // a deadline passed
  peer_lost,         // a process that was part of the job is gone
  aborted,           // the job ended for a reason reported elsewhere
  corrupt,           // bytes that are not what their format says
  io,                // the operating system failed a call
  internal,          // a state that should not be possible, reported instead of trusted
};

std::string_view to_string(Code code);

struct Error {
  Code code = Code::internal;
  std::string message;
};

template <class T = void>
using Result = tl::expected<T, Error>;

// `return fail(Code::not_found, fmt::format("no file '{}'", path));`
inline tl::unexpected<Error> fail(Code code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}
inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

// The error of the last failed system call: "cannot open 'x': No such file or directory".
tl::unexpected<Error> fail_errno(std::string_view what, int error_number);

}  // namespace muster

// MUSTER_TRY(auto rows, read_rows(path)); declares `rows`, or returns the error to the caller.
#define MUSTER_JOIN_(a, b) a##b
#define MUSTER_JOIN(a, b) MUSTER_JOIN_(a, b)
#define MUSTER_TRY(declaration, expression) \
  MUSTER_TRY_(declaration, expression, MUSTER_JOIN(result_, __LINE__))
#define MUSTER_TRY_(declaration, expression, result)                              \
  auto result = (expression);                                                     \
  if (!result) return tl::unexpected<::muster::Error>(std::move(result).error()); \
  declaration = *std::move(result)

// MUSTER_TRY_VOID(flush()); for a Result<void>.
#define MUSTER_TRY_VOID(expression)                                                             \
  do {                                                                                          \
    auto result_void_ = (expression);                                                           \
    if (!result_void_) return tl::unexpected<::muster::Error>(std::move(result_void_).error()); \
  } while (false)
