#include <string>

#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/exceptions.h"
#include "python/muster/bindings/process.h"

namespace muster::python {
namespace {

PyObject* define(nb::module_& core, const char* name, PyObject* base, const char* doc) {
  const std::string qualified = std::string("muster.") + name;
  PyObject* made = PyErr_NewExceptionWithDoc(qualified.c_str(), doc, base, nullptr);
  if (made == nullptr) throw nb::python_error();
  core.attr(name) = nb::borrow(made);
  return made;
}

PyObject* exception_of(Code code) {
  switch (code) {
    case Code::invalid_argument:
      return process().exceptions.invalid_argument != nullptr ? process().exceptions.invalid_argument
                                                              : PyExc_ValueError;
    case Code::not_found:
      return PyExc_FileNotFoundError;
    case Code::not_provided:
      return PyExc_NotImplementedError;
    case Code::refused:
      return process().exceptions.refused;
    case Code::timeout:
      return PyExc_TimeoutError;
    case Code::peer_lost:
      return process().exceptions.peer_lost;
    case Code::aborted:
      return process().exceptions.job_aborted;
    case Code::corrupt:
      return process().exceptions.corrupt_data;
    case Code::io:
      return PyExc_OSError;
    case Code::internal:
      return PyExc_RuntimeError;
  }
  return PyExc_RuntimeError;
}

}  // namespace

bool is_peer_lost_error(nb::handle exception) {
  return PyErr_GivenExceptionMatches(exception.ptr(), process().exceptions.peer_lost) != 0;
}

void set_exception(const Error& error) {
  if (!set_kept_exception(error)) PyErr_SetString(exception_of(error.code), error.message.c_str());
}

void raise(const Error& error) {
  set_exception(error);
  throw nb::python_error();
}

void bind_errors(nb::module_& core) {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Exception& exception) {
      set_exception(exception.error());
    }
  });
  core.def(
      "_set_argument_error",
      [](nb::type_object kind) {
        if (!PyObject_IsSubclass(kind.ptr(), PyExc_ValueError))
          throw nb::type_error("an error of arguments is a ValueError");
        process().exceptions.invalid_argument = kind.release().ptr();
      },
      nb::arg("kind"), nb::sig("def _set_argument_error(kind: type) -> None"),
      "The class of errors that say that an argument does not fit: a kind of ValueError.");
  process().exceptions.peer_lost =
      define(core, "PeerLostError", PyExc_RuntimeError,
             "A process that was part of the job is gone; the message names it.");
  process().exceptions.job_aborted = define(core, "JobAbortedError", PyExc_RuntimeError,
                                            "The job ended for a reason that another process reported.");
  process().exceptions.refused = define(core, "RefusedError", PyExc_RuntimeError,
                                        "The other side refused what was asked; the message says why.");
  process().exceptions.corrupt_data =
      define(core, "CorruptDataError", PyExc_ValueError,
             "Bytes are not what their format says; the message names file and offset.");
}

}  // namespace muster::python
