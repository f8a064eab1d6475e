#include "python/muster/bindings/worker_host.h"

#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>

#include "muster/train/train.h"
#include "python/muster/bindings/exceptions.h"
#include "python/muster/bindings/interpreter_lock.h"

namespace muster::python {
namespace {

class PythonWorkerHost final : public data::WorkerHost {
 public:
  // Called once while the interpreter lock is held by who makes the dataset.
  PythonWorkerHost()
      : functions_(nb::module_::import_("muster.dataset._workers").release()),
        stack_signal_(nb::cast<int>(nb::handle(functions_).attr("STACK_SIGNAL"))) {}

  // The threads that hold Python's own locks are waited for; the child has this thread alone.
  pid_t fork() const override {
    const InterpreterLock lock;
    call("flush");
    PyOS_BeforeFork();
    const pid_t process = ::fork();
    const int error = errno;
    if (process == 0)
      PyOS_AfterFork_Child();
    else
      PyOS_AfterFork_Parent();
    errno = error;
    return process;
  }
  void begin(int worker) const override {
    const InterpreterLock lock;
    call("begin", worker);
  }
  void end() const override {
    const InterpreterLock lock;
    call("end");
  }
  void seed(std::uint64_t number) const override {
    const InterpreterLock lock;
    call("seed", number);
  }
  int stack_signal() const override { return stack_signal_; }

  std::string pack(const Error& error) const override {
    const InterpreterLock lock;
    if (!set_kept_exception(error)) return {};
    const nb::python_error raised;
    const auto bytes = nb::cast<nb::bytes>(call("pack", raised.value()));
    return {bytes.c_str(), bytes.size()};
  }
  Error unpack(Error error, std::string_view packed, const std::string& where) const override {
    if (packed.empty()) return WorkerHost::unpack(std::move(error), packed, where);
    const InterpreterLock lock;
    try {
      const nb::object exception = call("unpack", nb::bytes(packed.data(), packed.size()), where.c_str());
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
      nb::python_error raised;
      return error_of(raised);
    } catch (const std::exception&) {  // its class is not to be had here
      return WorkerHost::unpack(std::move(error), packed, where);
    }
  }

 private:
  template <class... Arguments>
  nb::object call(const char* function, Arguments... arguments) const {
    return nb::handle(functions_).attr(function)(arguments...);
  }

  const nb::handle functions_;  // a module, which stays
  const int stack_signal_;
};

std::size_t row_bytes_from(nb::handle max_rowsize) {
  if (max_rowsize.is_none()) return 0;
  std::vector<std::int64_t> sizes;
  if (nb::isinstance<nb::list>(max_rowsize) || nb::isinstance<nb::tuple>(max_rowsize))
    sizes = nb::cast<std::vector<std::int64_t>>(max_rowsize);
  else
    sizes = {nb::cast<std::int64_t>(max_rowsize)};
  std::int64_t largest = 0;
  for (const std::int64_t size : sizes) {
    if (size == 0 || size < -1 || size > 1 << 20)
      throw nb::value_error(("max_rowsize is " + std::to_string(size) +
                             "; it is -1 (as much as a row takes), or from 1 to 1048576 MB")
                                .c_str());
    if (size == -1) return 0;
    largest = std::max(largest, size);
  }
  return static_cast<std::size_t>(largest) << 20;
}

}  // namespace

data::ProcessOptions processes_from(std::optional<int> num_parallel_workers, bool python_multiprocessing,
                                    nb::handle max_rowsize) {
  data::ProcessOptions options;
  options.row_bytes_max = row_bytes_from(max_rowsize);
  if (num_parallel_workers.value_or(1) < 1)
    throw nb::value_error(
        ("num_parallel_workers is " + std::to_string(*num_parallel_workers) + "; it must be at least 1")
            .c_str());
  if (!python_multiprocessing) return options;
  const int workers = train::data_settings().workers;
  options.count = num_parallel_workers.value_or(workers > 0 ? workers : data::workers_default());
  options.host = std::make_shared<PythonWorkerHost>();
  return options;
}

}  // namespace muster::python
