// Failures of the world as values: Result<T> holds a T or an Error that says what happened, to whom, what to
// try.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <type_traits>
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

// An Error where an expression needs a value instead of a Result: `y = fc(x) + b`. ADR 24 says which
// functions throw it; no other exception of Muster's own leaves the library.
class Exception : public std::exception {
 public:
  explicit Exception(Error error) : error_(std::move(error)) {}
  Exception(Code code, std::string message) : error_{code, std::move(message)} {}

  const Error& error() const { return error_; }
  const char* what() const noexcept override { return error_.message.c_str(); }

 private:
  Error error_;
};

template <class T = void, class E = Error>
class Result;

namespace internal {

template <class T>
inline constexpr bool is_outcome = false;  // holds a value or an error, so that it is no value of its own
template <class T, class E>
inline constexpr bool is_outcome<Result<T, E>> = true;
template <class T, class E>
inline constexpr bool is_outcome<tl::expected<T, E>> = true;
template <class E>
inline constexpr bool is_outcome<tl::unexpected<E>> = true;

// What `next` makes of the value of `result`.
template <class F, class R>
decltype(auto) invoke_with_value(F&& next, R&& result) {
  if constexpr (std::is_void_v<typename std::remove_cvref_t<R>::value_type>) {
    return std::invoke(std::forward<F>(next));
  } else {
    return std::invoke(std::forward<F>(next), *std::forward<R>(result));
  }
}

}  // namespace internal

// A T, or the error that was met instead. Who calls a function that gives one has to look at it: a dropped
// Result does not compile. It has what std::expected of C++23 has; errors are made by fail().
template <class T, class E>
class [[nodiscard]] Result : public tl::expected<T, E> {
  using Base = tl::expected<T, E>;

 public:
  // Constructors of its own: those of tl::expected take another Result for a bool.
  Result() requires(std::is_void_v<T> || std::is_default_constructible_v<T>) = default;
  Result(Base outcome) : Base(std::move(outcome)) {}
  Result(tl::unexpected<E> error) : Base(std::move(error)) {}
  template <class U = T>
  requires(!internal::is_outcome<std::remove_cvref_t<U>> && std::is_convertible_v<U, T>) Result(U&& value)
      : Base(tl::in_place, std::forward<U>(value)) {}
  template <class U>
  requires(!std::is_same_v<U, T> && std::is_convertible_v<U, T>) Result(Result<U, E> other)
      : Base(std::move(other)) {}

  // The value, or its error as an Exception: for expressions, and for callers that have nothing better to do.
  decltype(auto) value() const& requires std::is_same_v<E, Error> {
    throw_unless_good();
    if constexpr (!std::is_void_v<T>) return **this;
  }
  T value() && requires std::is_same_v<E, Error> {
    throw_unless_good();
    if constexpr (!std::is_void_v<T>) return *std::move(*this);
  }

  // The value through `next`, or the error as it is.
  template <class F>
  auto map(F&& next) const& {
    return mapped(*this, std::forward<F>(next));
  }
  template <class F>
  auto map(F&& next) && {
    return mapped(std::move(*this), std::forward<F>(next));
  }

  // What `next`, which gives a Result, makes of the value, or the error as it is.
  template <class F>
  auto and_then(F&& next) const& {
    return chained(*this, std::forward<F>(next));
  }
  template <class F>
  auto and_then(F&& next) && {
    return chained(std::move(*this), std::forward<F>(next));
  }

  // The value as it is, or the error through `explain`.
  template <class F>
  Result map_error(F&& explain) const& {
    if (*this) return *this;
    return tl::unexpected<E>(std::invoke(std::forward<F>(explain), this->error()));
  }
  template <class F>
  Result map_error(F&& explain) && {
    if (*this) return std::move(*this);
    return tl::unexpected<E>(std::invoke(std::forward<F>(explain), std::move(*this).error()));
  }

 private:
  void throw_unless_good() const {
    if (!*this) throw Exception(this->error());
  }

  template <class R, class F>
  static auto mapped(R&& result, F&& next) {
    using U = decltype(internal::invoke_with_value(std::forward<F>(next), std::forward<R>(result)));
    using Mapped = Result<std::remove_cvref_t<U>, E>;
    if (!result) return Mapped(tl::unexpected<E>(std::forward<R>(result).error()));
    if constexpr (std::is_void_v<U>) {
      internal::invoke_with_value(std::forward<F>(next), std::forward<R>(result));
      return Mapped();
    } else {
      return Mapped(internal::invoke_with_value(std::forward<F>(next), std::forward<R>(result)));
    }
  }

  template <class R, class F>
  static auto chained(R&& result, F&& next) {
    using Next = std::remove_cvref_t<decltype(internal::invoke_with_value(std::forward<F>(next),
                                                                          std::forward<R>(result)))>;
    if (!result) return Next(tl::unexpected<E>(std::forward<R>(result).error()));
    return Next(internal::invoke_with_value(std::forward<F>(next), std::forward<R>(result)));
  }
};

// `return fail(Code::not_found, fmt::format("no file '{}'", path));`
inline tl::unexpected<Error> fail(Code code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}
inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

namespace internal {

// The Result of something that gives a T: a Result<T> stays what it is.
template <class T>
struct ResultOf {
  using type = Result<T>;
};
template <class T>
struct ResultOf<Result<T>> {
  using type = Result<T>;
};

}  // namespace internal

// What `compute` gives, or the error that it throws as an Exception. Of a `compute` that gives a Result, its
// error.
template <class F>
auto catch_error(F&& compute) -> internal::ResultOf<std::invoke_result_t<F>>::type {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
      std::invoke(std::forward<F>(compute));
      return {};
    } else {
      return std::invoke(std::forward<F>(compute));
    }
  } catch (const Exception& exception) {
    return fail(exception.error());
  }
}

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
