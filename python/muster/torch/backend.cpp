// The calls that trainings make in each step, without Python between PyTorch and Muster.
//
// A backend that Python begins by begin(): calls of tensors that lie in order on the CPU are made here, and
// whatever else is asked goes to the methods of the Python class, as of any backend written in Python.
// Compiled by muster.torch._compiled for one version of PyTorch, which promises nothing to another.
#include <torch/csrc/distributed/c10d/py/PyBackend.hpp>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "calls.h"

namespace {

namespace py = pybind11;
using muster::torch::Call;
using muster::torch::Calls;
using muster::torch::Failure;
using muster::torch::Kind;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;
using Tensors = std::vector<at::Tensor>;
using std::chrono::milliseconds;

// ---- What Muster calls it; null where it has none ---------------------------------------------------------

const char* name_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kHalf:
      return "float16";
    case at::kBFloat16:
      return "bfloat16";
    case at::kChar:
      return "int8";
    case at::kByte:
      return "uint8";
    case at::kShort:
      return "int16";
    case at::kInt:
      return "int32";
    case at::kLong:
      return "int64";
    case at::kBool:
      return "bool";
    default:
      return nullptr;
  }
}

const char* name_of(const c10d::ReduceOp& op) {
  switch (op.op_) {
    case c10d::ReduceOp::SUM:
      return "sum";
    case c10d::ReduceOp::AVG:
      return "mean";
    case c10d::ReduceOp::PRODUCT:
      return "product";
    case c10d::ReduceOp::MIN:
      return "min";
    case c10d::ReduceOp::MAX:
      return "max";
    case c10d::ReduceOp::BAND:
      return "band";
    case c10d::ReduceOp::BOR:
      return "bor";
    case c10d::ReduceOp::BXOR:
      return "bxor";
    default:
      return nullptr;
  }
}

bool is_plain(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided && tensor.device().is_cpu() && tensor.is_contiguous() &&
         !tensor.is_conj() && !tensor.is_neg();
}

// What Python makes of a failure of `group`: the flight recorder is written there, too.
std::exception_ptr exception_of(const Calls& calls, const void* group, Failure* failure) {
  const py::gil_scoped_acquire lock;
  calls.raise(failure);
  const py::error_already_set raised;
  const py::object meant = py::module_::import("muster.torch._errors")
                               .attr("failure_of")(raised.value(), reinterpret_cast<std::uintptr_t>(group));
  const std::string text = py::str(meant);
  const c10::SourceLocation here{__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)};
  if (py::isinstance(meant, py::module_::import("torch.distributed").attr("DistBackendError")))
    return std::make_exception_ptr(c10::DistBackendError(here, text));
  if (PyErr_GivenExceptionMatches(meant.ptr(), PyExc_ValueError))
    return std::make_exception_ptr(c10::ValueError(here, text));
  return std::make_exception_ptr(c10::Error(here, text));
}

// ---- A call under way -------------------------------------------------------------------------------------

// It lives until the call has ended, and with it the tensors.
class CallWork : public c10d::Work {
 public:
  CallWork(int rank, c10d::OpType type, Tensors outputs, Tensors inputs)
      : Work(rank, type), outputs_(std::move(outputs)), inputs_(std::move(inputs)) {}

  std::vector<at::Tensor> result() override {
    wait();
    return outputs_;
  }

  // Ctrl-C is heard every tenth of a second.
  bool wait(milliseconds timeout = kNoTimeout) override {
    constexpr milliseconds slice(100);
    const auto begin = std::chrono::steady_clock::now();
    std::unique_lock lock(mutex_);
    while (!cv_.wait_for(lock, slice, [this] { return completed_; })) {
      lock.unlock();
      check_signals();
      TORCH_CHECK(timeout <= kNoTimeout || std::chrono::steady_clock::now() - begin < timeout,
                  "muster: the call is not done after ", static_cast<double>(timeout.count()) / 1000,
                  " s, its timeout");
      lock.lock();
    }
    if (exception_) std::rethrow_exception(exception_);
    return true;
  }

  // One that Python asks for may get callbacks that wait for other calls (PyTorch's PowerSGD does).
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    const std::lock_guard lock(mutex_);
    may_block_ = may_block_ || PyGILState_Check() != 0;
    if (!future_) {
      future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
      if (completed_) settle(*future_);
    }
    return future_;
  }

  // By the thread that makes all calls of the process: nothing may keep it.
  static void end(c10::intrusive_ptr<CallWork> work, std::exception_ptr failure) {
    work->finish(std::move(failure));
    bool elsewhere = false;
    {
      const std::lock_guard lock(work->mutex_);
      if (!work->future_ || work->future_->completed()) return;
      elsewhere = work->may_block_;
    }
    if (elsewhere)
      std::thread([work = std::move(work)] { work->settle(*work->future_); }).detach();
    else
      work->settle(*work->future_);
  }

 private:
  static void check_signals() {
    const py::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
  void settle(c10::ivalue::Future& future) const {
    if (exception_) return future.setError(exception_);
    future.markCompleted(c10::IValue(outputs_));
  }

  const Tensors outputs_, inputs_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;  // guarded by the mutex of Work, until it is there
  bool may_block_ = false;                          // what is called when it ends
};

// ---- The backend ------------------------------------------------------------------------------------------

class CompiledBackend : public c10d::PyBackend {
 public:
  // group: of Muster, whose owner outlives this. options: whose timeout is that of calls without their own.
  CompiledBackend(int rank, int size, const Calls& calls, void* group, c10::intrusive_ptr<Options> options)
      : PyBackend(rank, size), calls_(calls), group_(group), options_(std::move(options)) {}

  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) override {
    const char* const reduction = name_of(opts.reduceOp);
    if (tensors.size() != 1 || !is_reduced_here(tensors[0], reduction))
      return shown(PyBackend::allreduce(tensors, opts), tensors);
    const at::Tensor& tensor = tensors[0];
    return make({.kind = Kind::all_reduce,
                 .in = tensor.data_ptr(),
                 .out = tensor.data_ptr(),
                 .count = static_cast<std::size_t>(tensor.numel()),
                 .dtype = name_of(tensor.scalar_type()),
                 .reduction = reduction},
                c10d::OpType::ALLREDUCE, opts, tensors, {});
  }

  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) override {
    if (tensors.size() != 1 || !is_moved_here(tensors[0]))
      return shown(PyBackend::broadcast(tensors, opts), tensors);
    return make({.kind = Kind::broadcast,
                 .out = tensors[0].data_ptr(),
                 .count = tensors[0].nbytes(),
                 .root = static_cast<std::uint32_t>(opts.rootRank)},
                c10d::OpType::BROADCAST, opts, tensors, {});
  }

  WorkPointer all_gather_single(at::Tensor& output, at::Tensor& input,
                                const c10d::AllgatherOptions& opts) override {
    if (!is_moved_here(output) || !is_part(input, output))
      return shown(PyBackend::all_gather_single(output, input, opts), {output});
    return make(
        {.kind = Kind::all_gather, .in = input.data_ptr(), .out = output.data_ptr(), .count = input.nbytes()},
        c10d::OpType::_ALLGATHER_BASE, opts, {output}, {input});
  }

  WorkPointer reduce_scatter_single(at::Tensor& output, at::Tensor& input,
                                    const c10d::ReduceScatterOptions& opts) override {
    const char* const reduction = name_of(opts.reduceOp);
    if (!is_reduced_here(input, reduction) || !is_part(output, input))
      return shown(PyBackend::reduce_scatter_single(output, input, opts), {output});
    return make({.kind = Kind::reduce_scatter,
                 .in = input.data_ptr(),
                 .out = output.data_ptr(),
                 .count = static_cast<std::size_t>(output.numel()),
                 .dtype = name_of(output.scalar_type()),
                 .reduction = reduction},
                c10d::OpType::_REDUCE_SCATTER_BASE, opts, {output}, {input});
  }

  WorkPointer barrier(const c10d::BarrierOptions& opts) override {
    if (is_coalescing_) return PyBackend::barrier(opts);
    return make({.kind = Kind::barrier}, c10d::OpType::BARRIER, opts, {}, {});
  }

  // Between these two Python collects the works.
  void startCoalescing() override {
    is_coalescing_ = true;
    PyBackend::startCoalescing();
  }
  WorkPointer endCoalescing() override {
    is_coalescing_ = false;
    return PyBackend::endCoalescing();
  }

  std::uint64_t getSequenceNumberForGroup() override {
    return PyBackend::getSequenceNumberForGroup() + made_;
  }

 private:
  bool is_moved_here(const at::Tensor& tensor) const { return !is_coalescing_ && is_plain(tensor); }
  bool is_reduced_here(const at::Tensor& tensor, const char* reduction) const {
    return is_moved_here(tensor) && reduction != nullptr && name_of(tensor.scalar_type()) != nullptr;
  }
  bool is_part(const at::Tensor& part, const at::Tensor& whole) const {
    return is_plain(part) && part.scalar_type() == whole.scalar_type() &&
           part.numel() * getSize() == whole.numel();
  }

  // A Work that Python has made: c10d hides it behind one that knows wait() and getFuture() alone.
  WorkPointer shown(WorkPointer hidden, Tensors outputs) const {
    if (!hidden || is_coalescing_) return hidden;
    auto work =
        c10::make_intrusive<CallWork>(getRank(), c10d::OpType::UNKNOWN, std::move(outputs), Tensors());
    hidden->getFuture()->addCallback([work, hidden](c10::ivalue::Future&) {
      std::exception_ptr failure;
      try {
        hidden->wait();
      } catch (...) {
        failure = std::current_exception();
      }
      CallWork::end(work, std::move(failure));
    });
    return work;
  }

  template <class Opts>
  WorkPointer make(const Call& call, c10d::OpType type, const Opts& opts, Tensors outputs, Tensors inputs) {
    std::optional<py::gil_scoped_release> unlocked;
    if (PyGILState_Check() != 0) unlocked.emplace();
    ++made_;
    const milliseconds timeout = opts.timeout == c10d::kUnsetTimeout ? options_->timeout : opts.timeout;
    const double seconds = static_cast<double>(timeout.count()) / 1000;
    if (opts.asyncOp) return start(call, type, seconds, std::move(outputs), std::move(inputs));
    if (Failure* const failure = calls_.run(group_, &call, seconds))
      std::rethrow_exception(exception_of(calls_, group_, failure));
    return {};
  }

  WorkPointer start(const Call& call, c10d::OpType type, double seconds, Tensors outputs, Tensors inputs) {
    struct InFlight {
      const Calls& calls;
      const void* group;
      c10::intrusive_ptr<CallWork> work;
    };
    auto work = c10::make_intrusive<CallWork>(getRank(), type, std::move(outputs), std::move(inputs));
    auto context = std::make_unique<InFlight>(calls_, group_, work);
    calls_.start(
        group_, &call, seconds,
        [](void* data, Failure* failure) {
          const std::unique_ptr<InFlight> ended(static_cast<InFlight*>(data));
          CallWork::end(ended->work,
                        failure == nullptr ? nullptr : exception_of(ended->calls, ended->group, failure));
        },
        context.release());
    return work;
  }

  const Calls& calls_;
  void* const group_;
  const c10::intrusive_ptr<Options> options_;
  std::atomic<std::uint64_t> made_{0};
  std::atomic<bool> is_coalescing_{false};
};

// ---- The group of this backend alone ----------------------------------------------------------------------

// Its calls do not ask Python for methods that override them.
class CompiledGroup : public c10d::PyProcessGroup {
 public:
  using PyProcessGroup::PyProcessGroup;

  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) override {
    for (const at::Tensor& tensor : tensors) check_device(tensor);
    return ProcessGroup::allreduce(tensors, opts);
  }
  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) override {
    for (const at::Tensor& tensor : tensors) check_device(tensor);
    return ProcessGroup::broadcast(tensors, opts);
  }
  WorkPointer all_gather_single(at::Tensor& output, at::Tensor& input,
                                const c10d::AllgatherOptions& opts) override {
    check_device(input);
    return ProcessGroup::all_gather_single(output, input, opts);
  }
  WorkPointer reduce_scatter_single(at::Tensor& output, at::Tensor& input,
                                    const c10d::ReduceScatterOptions& opts) override {
    check_device(input);
    return ProcessGroup::reduce_scatter_single(output, input, opts);
  }
  WorkPointer barrier(const c10d::BarrierOptions& opts) override { return ProcessGroup::barrier(opts); }

 private:
  static void check_device(const at::Tensor& tensor) {
    TORCH_CHECK(tensor.device().is_cpu() || tensor.is_meta(),
                "muster: this group sends tensors on the CPU only, and this one is on ", tensor.device(),
                ": init_process_group(\"cpu:muster,cuda:nccl\") gives each device its backend");
  }
};

// pybind11 finds the methods that a Python class overrides by the type that PyTorch has bound: an object of
// one that is bound here would hide them. So these are constructors of that type.
template <class Bound, class... Arguments>
py::object constructor(const char* of, Bound* (*make)(Arguments...)) {
  const py::object type = py::module_::import("torch._C._distributed_c10d").attr(of);
  return py::cpp_function(
      [make](py::detail::value_and_holder& self, Arguments... arguments) {
        self.value_ptr() = make(std::forward<Arguments>(arguments)...);
      },
      py::name("__init__"), py::is_method(type), py::detail::is_new_style_constructor());
}

c10d::Backend* make_backend(int rank, int size, std::uintptr_t calls, std::uintptr_t group,
                            c10::intrusive_ptr<c10d::Backend::Options> options) {
  return new CompiledBackend(rank, size, *reinterpret_cast<const Calls*>(calls),
                             reinterpret_cast<void*>(group), std::move(options));
}
c10d::ProcessGroup* make_group(c10::intrusive_ptr<c10d::Store> store, int rank, int size) {
  return new CompiledGroup(std::move(store), rank, size);
}

}  // namespace

PYBIND11_MODULE(_calls, module) {
  module.attr("begin_backend") = constructor("Backend", make_backend);
  module.attr("begin_group") = constructor("ProcessGroup", make_group);
}
