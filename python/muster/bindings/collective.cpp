// Groups that are made by hand, of ranks that another library has counted: what muster.torch stands on.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <chrono>

#include "muster/cluster/cluster.h"
#include "muster/collective/collective.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/interpreter_lock.h"
#include "python/muster/torch/calls.h"

struct muster::torch::Failure {
  Error error;
};

namespace muster::python {
namespace {

using collective::AsyncGroup;
using collective::Endpoint;
using collective::Listener;
using collective::Work;
using Address = std::uintptr_t;  // of a buffer: tensor.data_ptr()
using Seconds = std::optional<double>;

Duration to_duration(double seconds) {
  constexpr double longest = 1e9;  // fits into a clock, however often it is added up
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::min(seconds, longest)));
}
std::optional<Duration> to_duration(Seconds seconds) {
  if (!seconds) return {};
  return to_duration(*seconds);
}

std::byte* at(Address address) {
  return reinterpret_cast<std::byte*>(address);  // NOLINT: that is what Python has
}

DType dtype_named(const std::string& name) {
  const auto dtype = dtype_from_string(name);
  if (!dtype) raise({Code::invalid_argument, fmt::format("no dtype is called {}", name)});
  return *dtype;
}
Reduction reduction_named(const std::string& name) {
  const auto reduction = reduction_from_string(name);
  if (!reduction) raise({Code::invalid_argument, fmt::format("no reduction is called {}", name)});
  return *reduction;
}

// An error as the exception that it becomes; None for a good end. With the interpreter lock.
nb::object exception_of(const Result<>& end) {
  if (end) return nb::none();
  set_exception(end.error());
  const nb::python_error raised;
  return nb::borrow(raised.value());
}

// Ctrl-C is heard every tenth of a second. False where the time is over.
bool wait(const Work& work, Seconds seconds) {
  constexpr Duration slice = std::chrono::milliseconds(100);
  const Clock& clock = real_clock();
  const TimePoint start = clock.now();
  for (;;) {
    std::optional<Duration> left;
    if (seconds) left = to_duration(*seconds) - (clock.now() - start);
    std::optional<Result<>> end;
    {
      const nb::gil_scoped_release unlocked;
      end = work.wait(std::min(slice, left.value_or(slice)));
    }
    if (end) {
      unwrap(*end);
      return true;
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (left && *left <= slice) return false;
  }
}

// The pieces of several buffers, by rank.
template <class Byte>
std::vector<std::span<Byte>> spans(const std::vector<Address>& addresses,
                                   const std::vector<std::size_t>& sizes) {
  if (addresses.size() != sizes.size())
    raise({Code::invalid_argument, fmt::format("{} buffers with {} sizes", addresses.size(), sizes.size())});
  std::vector<std::span<Byte>> made;
  for (std::size_t i = 0; i < sizes.size(); ++i) made.emplace_back(at(addresses[i]), sizes[i]);
  return made;
}
template <class Byte>
std::vector<std::span<Byte>> spans(const std::vector<Address>& addresses, std::size_t size_bytes) {
  return spans<Byte>(addresses, std::vector<std::size_t>(addresses.size(), size_bytes));
}

Error closed() { return {Code::aborted, "the group is closed"}; }

class Group {
 public:
  explicit Group(std::unique_ptr<Communicator> group)
      : calls_(std::make_unique<AsyncGroup>(std::move(group))) {}

  ~Group() { close(); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // The call, now or under way. With the interpreter lock.
  std::shared_ptr<Work> call(const AsyncGroup::Call& call, bool asynchronous, Seconds timeout) {
    AsyncGroup& calls = open();
    const nb::gil_scoped_release unlocked;
    if (asynchronous) return calls.start(call, to_duration(timeout));
    const Result<> done = calls.run(call, to_duration(timeout));
    if (done) return nullptr;
    const nb::gil_scoped_acquire locked;
    raise(done.error());
  }
  // The caller may free its buffer when this returns or raises: a message that is too late, or that Ctrl-C
  // has interrupted, ends the group, as a collective call does.
  std::shared_ptr<Work> message(const std::shared_ptr<Work>& work, bool asynchronous, Seconds timeout) {
    if (asynchronous) return work;
    const Error late{Code::timeout, fmt::format("a message waited {} s", timeout.value_or(0))};
    try {
      if (wait(*work, timeout)) return nullptr;
    } catch (...) {
      if (!work->is_done()) end(*work, {Code::aborted, "a message was interrupted"});
      throw;
    }
    end(*work, late);
    raise(late);
  }

  AsyncGroup* find() const { return calls_.get(); }  // null once it is closed
  AsyncGroup& open() const {
    if (!calls_) raise(closed());
    return *calls_;
  }
  void end(const Work& work, Error reason) const {
    AsyncGroup& calls = open();
    const nb::gil_scoped_release unlocked;
    calls.abort(std::move(reason));
    work.wait();
  }
  void close() {
    const nb::gil_scoped_release unlocked;  // its threads may want the lock
    calls_.reset();
  }

 private:
  std::unique_ptr<AsyncGroup> calls_;
};

using Ends = std::vector<std::tuple<std::string, std::string, std::uint16_t, std::string>>;

std::unique_ptr<Group> connect(std::uint32_t rank, const Ends& endpoints, Listener& listener,
                               std::uint64_t job_id, std::uint64_t epoch, double connect_timeout,
                               double call_timeout) {
  collective::Group group{.epoch = epoch, .job_id = job_id, .rank = rank, .endpoints = {}};
  for (const auto& [host_key, address, port, local_name] : endpoints)
    group.endpoints.push_back(
        {.host_key = host_key, .address = address, .port = port, .local_name = local_name});
  const Environment& environment = real_environment();
  auto security = unwrap(cluster::open_security(cluster::read_security_settings(environment),
                                                environment.get("MUSTER_STRICT") == "1"));
  const bool reads_neighbours = environment.get("MUSTER_READ_NEIGHBOURS") != "0";
  auto made = [&] {
    const nb::gil_scoped_release unlocked;
    return collective::connect(std::move(group), std::move(listener),
                               {.connect_timeout = to_duration(connect_timeout),
                                .call_timeout = to_duration(call_timeout),
                                .security = std::move(security),
                                .reads_neighbours = reads_neighbours});
  }();
  return std::make_unique<Group>(unwrap(std::move(made)));
}

void call_when_done(Work& work, nb::object then) {
  // Dropped on any thread, with the lock.
  auto kept = std::shared_ptr<nb::object>(new nb::object(std::move(then)), [](nb::object* held) {
    const InterpreterLock locked;
    delete held;
  });
  const nb::gil_scoped_release unlocked;
  work.on_done([kept = std::move(kept)](const Result<>& end) {
    const InterpreterLock locked;
    try {
      (*kept)(exception_of(end));
    } catch (nb::python_error& error) {
      error.discard_as_unraisable(*kept);
    }
  });
}

// `work`: of what the class is of.
template <class Waited>
void bind_waits(nb::class_<Waited>& waited, Work& (*work)(Waited&)) {
  waited.def("is_done", [work](Waited& self) { return work(self).is_done(); })
      .def(
          "wait", [work](Waited& self, Seconds timeout) { return wait(work(self), timeout); },
          nb::arg("timeout") = nb::none(),
          "Waits for the end, at most `timeout` seconds: whether it came. Raises what failed.")
      .def(
          "on_done", [work](Waited& self, nb::object then) { call_when_done(work(self), std::move(then)); },
          nb::arg("then"),
          "Calls `then` with None or the exception: at once if done, else on another thread.");
}

void bind_work(nb::module_& core) {
  nb::class_<Work> work(core, "_Work", "A call that is under way.");
  bind_waits<Work>(work, [](Work& self) -> Work& { return self; });
  nb::class_<AsyncGroup::FromAny> from_any(core, "_WorkFromAny", "A receive from any rank.");
  bind_waits<AsyncGroup::FromAny>(from_any, [](AsyncGroup::FromAny& self) -> Work& { return *self.work; });
  from_any.def(
      "source", [](const AsyncGroup::FromAny& self) { return *self.from; },
      "Which rank the message came from, once it is there.");
}

void bind_group(nb::module_& core) {
  using Sizes = std::vector<std::size_t>;
  using Addresses = std::vector<Address>;
  const auto asynchronous = nb::arg("asynchronous") = false;
  const auto timeout = nb::arg("timeout") = nb::none();
  nb::class_<Group>(core, "_Group", "A group of ranks; buffers are addresses.")
      .def_prop_ro("rank", [](const Group& group) { return group.open().group().rank(); })
      .def_prop_ro("size", [](const Group& group) { return group.open().group().size(); })
      .def(
          "all_reduce",
          [](Group& group, Address in, Address out, std::size_t count, const std::string& dtype,
             const std::string& reduction, bool async, Seconds seconds) {
            return group.call(
                [=, type = dtype_named(dtype), how = reduction_named(reduction)](Communicator& ranks) {
                  return ranks.all_reduce(at(in), at(out), count, type, how);
                },
                async, seconds);
          },
          nb::arg("in_"), nb::arg("out"), nb::arg("count"), nb::arg("dtype"), nb::arg("reduction"),
          asynchronous, timeout)
      .def(
          "broadcast",
          [](Group& group, Address data, std::size_t size, std::uint32_t root, bool async, Seconds seconds) {
            return group.call([=](Communicator& ranks) { return ranks.broadcast(at(data), size, root); },
                              async, seconds);
          },
          nb::arg("data"), nb::arg("size_bytes"), nb::arg("root"), asynchronous, timeout)
      .def(
          "all_gather",
          [](Group& group, Address in, Address out, std::size_t size, bool async, Seconds seconds) {
            return group.call([=](Communicator& ranks) { return ranks.all_gather(at(in), at(out), size); },
                              async, seconds);
          },
          nb::arg("in_"), nb::arg("out"), nb::arg("size_bytes"), asynchronous, timeout)
      .def(
          "all_gather_sizes",
          [](Group& group, Address in, const Addresses& outs, const Sizes& sizes, bool async,
             Seconds seconds) {
            auto places = spans<std::byte>(outs, sizes);
            const std::uint32_t rank = group.open().group().rank();
            const std::size_t own = rank < sizes.size() ? sizes[rank] : 0;
            return group.call(
                [=, places = std::move(places)](Communicator& ranks) {
                  return ranks.all_gather(std::span<const std::byte>(at(in), own), places);
                },
                async, seconds);
          },
          nb::arg("in_"), nb::arg("outs"), nb::arg("sizes"), asynchronous, timeout)
      .def(
          "reduce",
          [](Group& group, Address in, Address out, std::size_t count, const std::string& dtype,
             const std::string& reduction, std::uint32_t root, bool async, Seconds seconds) {
            return group.call(
                [=, type = dtype_named(dtype), how = reduction_named(reduction)](Communicator& ranks) {
                  return ranks.reduce(at(in), at(out), count, type, how, root);
                },
                async, seconds);
          },
          nb::arg("in_"), nb::arg("out"), nb::arg("count"), nb::arg("dtype"), nb::arg("reduction"),
          nb::arg("root"), asynchronous, timeout)
      .def(
          "reduce_scatter",
          [](Group& group, Address in, Address out, std::size_t count, const std::string& dtype,
             const std::string& reduction, bool async, Seconds seconds) {
            return group.call(
                [=, type = dtype_named(dtype), how = reduction_named(reduction)](Communicator& ranks) {
                  return ranks.reduce_scatter(at(in), at(out), count, type, how);
                },
                async, seconds);
          },
          nb::arg("in_"), nb::arg("out"), nb::arg("count"), nb::arg("dtype"), nb::arg("reduction"),
          asynchronous, timeout)
      .def(
          "all_to_all",
          [](Group& group, const Addresses& ins, const Sizes& in_sizes, const Addresses& outs,
             const Sizes& out_sizes, bool uneven, bool async, Seconds seconds) {
            auto sent = spans<const std::byte>(ins, in_sizes);
            auto places = spans<std::byte>(outs, out_sizes);
            return group.call(
                [uneven, sent = std::move(sent), places = std::move(places)](Communicator& ranks) {
                  return uneven ? ranks.all_to_all_uneven(sent, places) : ranks.all_to_all(sent, places);
                },
                async, seconds);
          },
          nb::arg("ins"), nb::arg("in_sizes"), nb::arg("outs"), nb::arg("out_sizes"),
          nb::arg("uneven") = true, asynchronous, timeout)
      .def(
          "gather",
          [](Group& group, Address in, std::size_t size, const Addresses& outs, std::uint32_t root,
             bool async, Seconds seconds) {
            return group.call(
                [=, places = spans<std::byte>(outs, size)](Communicator& ranks) {
                  return ranks.gather(std::span<const std::byte>(at(in), size), places, root);
                },
                async, seconds);
          },
          nb::arg("in_"), nb::arg("size_bytes"), nb::arg("outs"), nb::arg("root"), asynchronous, timeout)
      .def(
          "scatter",
          [](Group& group, const Addresses& ins, Address out, std::size_t size, std::uint32_t root,
             bool async, Seconds seconds) {
            return group.call(
                [=, sent = spans<const std::byte>(ins, size)](Communicator& ranks) {
                  return ranks.scatter(sent, std::span<std::byte>(at(out), size), root);
                },
                async, seconds);
          },
          nb::arg("ins"), nb::arg("out"), nb::arg("size_bytes"), nb::arg("root"), asynchronous, timeout)
      .def(
          "barrier",
          [](Group& group, bool async, Seconds seconds) {
            return group.call([](Communicator& ranks) { return ranks.barrier(); }, async, seconds);
          },
          asynchronous, timeout)
      .def(
          "send",
          [](Group& group, Address data, std::size_t size, std::uint32_t to, std::int64_t tag, bool async,
             Seconds seconds) {
            return group.message(group.open().send(to, {at(data), size}, tag), async, seconds);
          },
          nb::arg("data"), nb::arg("size_bytes"), nb::arg("to"), nb::arg("tag") = 0, asynchronous, timeout)
      .def(
          "receive",
          [](Group& group, Address data, std::size_t size, std::uint32_t from, std::int64_t tag, bool async,
             Seconds seconds) {
            return group.message(group.open().receive(from, {at(data), size}, tag), async, seconds);
          },
          nb::arg("data"), nb::arg("size_bytes"), nb::arg("from_"), nb::arg("tag") = 0, asynchronous, timeout)
      .def(
          "receive_from_any",
          [](Group& group, Address data, std::size_t size, std::int64_t tag) {
            return group.open().receive_from_any({at(data), size}, tag);
          },
          nb::arg("data"), nb::arg("size_bytes"), nb::arg("tag") = 0,
          "The first message with that tag from some rank for which no receive() from it waits.")
      .def(
          "state",
          [](const Group& group) {
            const collective::GroupState state = group.open().state();
            return std::tuple(std::string(to_string(state.call.kind)), state.call.number, state.call.finished,
                              state.messages, state.awaited);
          },
          "The call under way (\"\" for none), its number or the other rank of a message, how many calls and "
          "how many messages have ended, and the ranks of this host that the call waits for.")
      .def(
          "abort",
          [](const Group& group, const std::string& reason) {
            group.open().abort({Code::aborted, reason});
          },
          nb::arg("reason"))
      .def(
          "lose",
          [](const Group& group, std::uint32_t rank, const std::string& reason) {
            AsyncGroup& calls = group.open();
            const nb::gil_scoped_release unlocked;
            calls.lose(rank, {Code::peer_lost, reason});
          },
          nb::arg("rank"), nb::arg("reason"))
      .def("close", &Group::close)
      .def_prop_ro(
          "_address", [](const Group& group) { return reinterpret_cast<Address>(&group); },
          "What the compiled part of muster.torch calls; valid as long as this object.");
}

// ---- The table of muster.torch's compiled part ------------------------------------------------------------

Result<AsyncGroup::Call> call_of(const torch::Call& asked) {
  using torch::Kind;
  const auto in = static_cast<const std::byte*>(asked.in);
  const auto out = static_cast<std::byte*>(asked.out);
  const std::size_t count = asked.count;
  switch (asked.kind) {
    case Kind::barrier:
      return [](Communicator& ranks) { return ranks.barrier(); };
    case Kind::broadcast:
      return [=, root = asked.root](Communicator& ranks) { return ranks.broadcast(out, count, root); };
    case Kind::all_gather:
      return [=](Communicator& ranks) { return ranks.all_gather(in, out, count); };
    case Kind::all_reduce:
    case Kind::reduce_scatter:
      break;
  }
  const auto type = dtype_from_string(asked.dtype);
  const auto how = reduction_from_string(asked.reduction);
  if (!type || !how)
    return fail(Code::invalid_argument, fmt::format("no {} of {}", asked.reduction, asked.dtype));
  if (asked.kind == Kind::all_reduce)
    return [=](Communicator& ranks) { return ranks.all_reduce(in, out, count, *type, *how); };
  return [=](Communicator& ranks) { return ranks.reduce_scatter(in, out, count, *type, *how); };
}

torch::Failure* failure_of(const Result<>& end) {
  return end ? nullptr : new torch::Failure{end.error()};  // NOLINT: it leaves C++, and raise() takes it back
}

const torch::Calls compiled_calls = {
    .run = [](void* group, const torch::Call* asked, double seconds) -> torch::Failure* {
      AsyncGroup* const calls = static_cast<Group*>(group)->find();
      if (calls == nullptr) return failure_of(fail(closed()));
      const auto call = call_of(*asked);
      return failure_of(call ? calls->run(*call, to_duration(seconds)) : Result<>(fail(call.error())));
    },
    .start =
        [](void* group, const torch::Call* asked, double seconds, void (*done)(void*, torch::Failure*),
           void* context) {
          AsyncGroup* const calls = static_cast<Group*>(group)->find();
          if (calls == nullptr) return done(context, failure_of(fail(closed())));
          const auto call = call_of(*asked);
          if (!call) return done(context, failure_of(fail(call.error())));
          calls->start(*call, to_duration(seconds))->on_done([done, context](const Result<>& end) {
            done(context, failure_of(end));
          });
        },
    .raise =
        [](torch::Failure* failure) {
          const std::unique_ptr<torch::Failure> taken(failure);
          set_exception(taken->error);
        },
};

}  // namespace

void bind_collective(nb::module_& core) {
  bind_work(core);
  bind_group(core);
  nb::class_<Listener>(core, "_Listener", "Where peers connect to, on a numeric address of this host.")
      .def(nb::new_([](const std::string& address) {
             return std::make_unique<Listener>(unwrap(Listener::open(address)));
           }),
           nb::arg("address"))
      .def_prop_ro("address", [](const Listener& listener) { return listener.address(); })
      .def_prop_ro("port", &Listener::port)
      .def_prop_ro("local_name", [](const Listener& listener) { return listener.local_name(); });
  core.def("_host_key", [] { return unwrap(net::host_key(real_environment())); });
  core.def("_connect", &connect, nb::arg("rank"), nb::arg("endpoints"), nb::arg("listener"),
           nb::arg("job_id"), nb::arg("epoch"), nb::arg("connect_timeout"), nb::arg("call_timeout"));
  core.def(
      "_compiled_calls", [] { return reinterpret_cast<Address>(&compiled_calls); },
      "The table that python/muster/torch/calls.h describes.");
}

}  // namespace muster::python
