#include "python/muster/bindings/exceptions.h"

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "python/muster/bindings/process.h"

namespace muster::python {
namespace {

constexpr std::string_view ticket_prefix = "[Python exception ";
constexpr std::size_t kept_limit =
    64;  // those of iterators that were dropped after an error are never raised

}  // namespace

Error error_of(nb::python_error& exception) {
  auto& kept = process().kept_exceptions;
  const std::uint64_t ticket = process().next_ticket++;
  if (kept.size() >= kept_limit) kept.erase(kept.begin());
  kept.emplace(ticket, nb::borrow(exception.value()));
  // A callback that waited for others: the training may go back and make the step again.
  const auto raised = nb::borrow(exception.value());
  return Error{is_peer_lost_error(raised) ? Code::peer_lost : Code::internal,
               std::string(ticket_prefix) + std::to_string(ticket) + "] " + std::string(exception.what())};
}

bool set_kept_exception(const Error& error) {
  const std::size_t at = error.message.find(ticket_prefix);
  if (at == std::string::npos) return false;
  std::uint64_t ticket = 0;
  const char* digits = error.message.data() + at + ticket_prefix.size();
  std::from_chars(digits, error.message.data() + error.message.size(), ticket);
  auto& kept = process().kept_exceptions;
  const auto found = kept.find(ticket);
  if (found == kept.end()) return false;
  const nb::object exception = std::move(found->second);
  kept.erase(found);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  return true;
}

}  // namespace muster::python
