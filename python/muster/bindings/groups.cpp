// Calls of all workers, or of a group of some of them: as ops, and without waiting.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "muster/nn/nn.h"
#include "muster/train/train.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/dtype.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using graph::Value;
using train::StartedCall;

// ---- As ops -----------------------------------------------------------------------------------------------

// None, the name of a group, or a muster.Group.
std::string group_name(nb::handle group) {
  if (group.is_none()) return "";
  if (nb::isinstance<nb::str>(group)) return nb::cast<std::string>(group);
  if (!nb::hasattr(group.type(), "_name_of_group"))
    throw nb::type_error(("a group is made by muster.new_group; this is " + class_name(group)).c_str());
  return nb::cast<std::string>(group.attr("_name_of_group"));  // which raises outside of the group
}

// What `call` gives, whose other workers are waited for without the interpreter lock.
template <class Call>
TensorObject collective(const Call& call) {
  if (graph::is_tracing()) return tensor_result(call());
  const Value made = [&] {
    const nb::gil_scoped_release unlocked;
    return call();
  }();
  return tensor_result(made);
}

Reduction known(const char* op, const std::string& name) {
  if (const auto reduction = reduction_from_string(name)) return *reduction;
  throw nb::value_error((std::string(op) + ": reduction is 'sum', 'mean', 'max', 'min', 'product', 'band', " +
                         "'bor' or 'bxor', not '" + name + "'")
                            .c_str());
}

TensorObject all_reduce(const Value& x, const std::string& reduction, nb::handle group) {
  const Reduction how = known("all_reduce", reduction);
  return collective([&, name = group_name(group)] { return train::all_reduce(x, how, name); });
}
TensorObject all_gather(const Value& x, nb::handle group) {
  return collective([&, name = group_name(group)] { return train::all_gather(x, name); });
}
TensorObject reduce_scatter(const Value& x, const std::string& reduction, nb::handle group) {
  const Reduction how = known("reduce_scatter", reduction);
  return collective([&, name = group_name(group)] { return train::reduce_scatter(x, how, name); });
}
TensorObject all_to_all(const Value& x, nb::handle group) {
  return collective([&, name = group_name(group)] { return train::all_to_all(x, name); });
}
TensorObject broadcast(const Value& x, std::int64_t root, nb::handle group) {
  return collective([&, name = group_name(group)] { return train::broadcast(x, root, name); });
}
TensorObject reduce(const Value& x, const std::string& reduction, std::int64_t root, nb::handle group) {
  const Reduction how = known("reduce", reduction);
  return collective([&, name = group_name(group)] { return train::reduce(x, how, root, name); });
}
TensorObject send(const Value& x, std::int64_t to, std::int64_t tag, nb::handle group) {
  return collective([&, name = group_name(group)] { return train::send(x, to, tag, name); });
}
TensorObject receive(const Value& x, std::int64_t from, std::int64_t tag, nb::handle group) {
  return collective([&, name = group_name(group)] { return train::receive(x, from, tag, name); });
}

void bind_ops_of_groups(nb::module_& core) {
  const auto group = nb::arg("group").none() = nb::none();
  core.def(
      "all_reduce", &all_reduce, nb::arg("x"), nb::arg("reduction") = "sum", group,
      "The tensors of all workers joined element by element: `reduction` is 'sum', 'mean', 'max', 'min', "
      "'product', and of whole numbers and bools 'band', 'bor' or 'bxor'. Every worker calls it at the same "
      "place with a tensor of the same type; 16-bit floats are added in float32 and rounded once. With a "
      "`group` of muster.new_group its workers alone call it, and what counts in all that is said here is "
      "their number and their ranks in it. In a process without a cluster, x itself.");
  core.def(
      "all_gather", &all_gather, nb::arg("x"), group,
      "The tensors (n, ...) of all workers, one after another in the order of the ranks: (workers times n, "
      "...). Every worker (of `group`) calls it at the same place with a tensor of the same type.");
  core.def("reduce_scatter", &reduce_scatter, nb::arg("x"), nb::arg("reduction") = "sum", group,
           "This worker's block of what all_reduce(x, reduction, group) gives: the first axis of x (workers "
           "times n, ...) is cut into as many; (n, ...).");
  core.def(
      "all_to_all", &all_to_all, nb::arg("x"), group,
      "Block i of x (workers times n, ...) goes to worker i (of `group`); what comes, in the order of the "
      "ranks, has the shape of x.");
  core.def("broadcast", &broadcast, nb::arg("x"), nb::arg("root") = 0, group,
           "The tensor of worker `root` (of `group`); those of the others say shape and dtype.");
  core.def("reduce", &reduce, nb::arg("x"), nb::arg("reduction") = "sum", nb::arg("root") = 0, group,
           "What all_reduce(x, reduction, group) gives on worker `root`, zeros on the others.");
  core.def("send", &send, nb::arg("x"), nb::arg("to"), nb::arg("tag") = 0, group,
           "Sends x to worker `to` (of `group`), which gets it by receive() with the same `tag`, 0 or more; "
           "gives x, for its gradient: what the other worker's receive passes back is added to what comes "
           "from the uses of the result here. It may return only when the other worker receives.");
  core.def(
      "receive", &receive, nb::arg("x"), nb::arg("from_"), nb::arg("tag") = 0, group,
      "What worker `from_` (of `group`) sends with this `tag`: a tensor of the shape and dtype of x. Its "
      "gradient goes back to the sender wherever x is something that gradients are wanted of (x itself "
      "gets none): both workers compute gradients, or neither.");
}

// ---- Without waiting --------------------------------------------------------------------------------------

// A tensor that a call under way writes.
using Started = std::pair<TensorObject, StartedCall>;

// Keeps what the call reads and writes as long as it is under way.
StartedCall keep(StartedCall call, std::vector<Tensor> tensors) {
  std::const_pointer_cast<collective::Work>(call.work)->on_done(
      [kept = std::move(tensors)](const Result<>&) {});
  return call;
}

template <class Start>
Started start(const Tensor& in, Tensor out, Start start_it) {
  Result<StartedCall> started = [&] {
    const nb::gil_scoped_release unlocked;
    return start_it();
  }();
  StartedCall call = keep(unwrap(std::move(started)), {in, out});
  return {tensor_object(std::move(out)), std::move(call)};
}

std::int64_t valid_tag(const char* op, std::int64_t tag) {
  if (tag >= 0) return tag;
  throw nb::value_error(fmt::format("{}: a tag is 0 or more, not {}", op, tag).c_str());
}

std::span<std::byte> bytes_of(const Tensor& tensor) { return {tensor.bytes(), tensor.size_bytes()}; }

Started start_all_reduce(const Value& x, const std::string& reduction, const std::string& group) {
  const Tensor in = elements_of(x);
  Tensor out = Tensor(in.dtype(), in.shape());
  const Reduction how = known("all_reduce", reduction);
  if (!can_reduce(in.dtype(), how))
    throw nb::value_error(
        fmt::format("all_reduce: there is no {} of {}", reduction, to_string(in.dtype())).c_str());
  return start(in, out, [&] {
    return train::start_call(group, [in, out, how](Communicator& ranks) {
      const auto count = static_cast<std::size_t>(in.shape().elements());
      if (ranks.size() > 1)
        return ranks.all_reduce(bytes_of(in).data(), bytes_of(out).data(), count, in.dtype(), how);
      std::ranges::copy(bytes_of(in), bytes_of(out).begin());
      return Result<>{};
    });
  });
}

Started start_broadcast(const Value& x, std::uint32_t root, const std::string& group) {
  const Tensor in = elements_of(x);
  Tensor out = in.clone();
  return start(in, out, [&] {
    return train::start_call(group, [out, root](Communicator& ranks) {
      return ranks.broadcast(bytes_of(out).data(), out.size_bytes(), root);
    });
  });
}

// Where pieces of so many elements lie in a row of them.
template <class Byte>
std::vector<std::span<Byte>> cut(const Tensor& row, const std::vector<std::size_t>& counts) {
  std::vector<std::span<Byte>> made;
  std::byte* at = bytes_of(row).data();
  for (const std::size_t count : counts) {
    made.emplace_back(at, count * size_bytes(row.dtype()));
    at += made.back().size();
  }
  return made;
}

// `sent` elements of x to each rank, `received` from each; x a row.
Started start_exchange(const Value& x, const std::vector<std::size_t>& sent,
                       const std::vector<std::size_t>& received, const std::string& group) {
  const Tensor in = elements_of(x);
  const auto total = [](const std::vector<std::size_t>& counts) {
    return static_cast<std::int64_t>(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  };
  const std::size_t ranks = unwrap(train::group_ranks(group)).size();
  if (sent.size() != ranks || received.size() != ranks || total(sent) > in.shape().elements())
    throw nb::value_error(
        fmt::format("an exchange of {} elements in {} pieces, and {} pieces from others, in "
                    "a group of {}",
                    in.shape().elements(), sent.size(), received.size(), ranks)
            .c_str());
  Tensor out = Tensor(in.dtype(), Shape{total(received)});
  return start(in, out, [&] {
    return train::start_call(group, [=](Communicator& all) {
      return all.all_to_all_uneven(cut<const std::byte>(in, sent), cut<std::byte>(out, received));
    });
  });
}

StartedCall start_barrier(const std::string& group) {
  const nb::gil_scoped_release unlocked;
  auto started = train::start_call(group, [](Communicator& ranks) { return ranks.barrier(); });
  const nb::gil_scoped_acquire locked;
  return unwrap(std::move(started));
}

StartedCall start_send(const Value& x, std::uint32_t peer, std::int64_t tag, const std::string& group) {
  const Tensor in = elements_of(x);
  return start(in, in, [&] { return train::start_send(group, peer, bytes_of(in), valid_tag("send", tag)); })
      .second;
}

Started start_receive(const Value& x, std::uint32_t peer, std::int64_t tag, const std::string& group) {
  Tensor out = Tensor(x.dtype(), x.shape());
  return start(out, out,
               [&] { return train::start_receive(group, peer, bytes_of(out), valid_tag("receive", tag)); });
}

// Ctrl-C is heard now and then.
bool wait(const StartedCall& call, std::optional<double> seconds) {
  const Clock& clock = real_clock();
  const TimePoint start = clock.now();
  for (;;) {
    Duration slice = wait_slice;
    if (seconds)
      slice = std::min(slice, std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*seconds)) -
                                  (clock.now() - start));
    std::optional<Result<>> end;
    {
      const nb::gil_scoped_release unlocked;
      end = call.wait(std::max(slice, Duration::zero()));
    }
    if (end) {
      unwrap(*end);
      return true;
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (slice < wait_slice) return false;
  }
}

void bind_started(nb::module_& core) {
  nb::class_<StartedCall>(core, "_StartedCall", "A call of workers that is under way.")
      .def("is_done", [](const StartedCall& call) { return call.work->is_done(); })
      .def("wait", &wait, nb::arg("timeout") = nb::none(),
           "Waits for the end, at most `timeout` seconds: whether it came. Raises what failed.");
  core.def("_start_all_reduce", &start_all_reduce, nb::arg("x"), nb::arg("reduction"), nb::arg("group"));
  core.def("_start_broadcast", &start_broadcast, nb::arg("x"), nb::arg("root"), nb::arg("group"));
  core.def("_start_exchange", &start_exchange, nb::arg("x"), nb::arg("sent"), nb::arg("received"),
           nb::arg("group"));
  core.def("_start_barrier", &start_barrier, nb::arg("group"));
  core.def("_start_send", &start_send, nb::arg("x"), nb::arg("peer"), nb::arg("tag"), nb::arg("group"));
  core.def("_start_receive", &start_receive, nb::arg("x"), nb::arg("peer"), nb::arg("tag"), nb::arg("group"));
}

}  // namespace

void bind_groups(nb::module_& core) {
  bind_ops_of_groups(core);
  bind_started(core);
  core.def(
      "_create_group",
      [](const std::string& name, const std::vector<std::uint32_t>& ranks, bool of_steps) {
        unwrap(train::create_group(name, ranks, of_steps));
      },
      nb::arg("name"), nb::arg("ranks"), nb::arg("of_steps") = false);
  core.def(
      "_destroy_group",
      [](const std::string& name) {
        const nb::gil_scoped_release unlocked;
        auto done = train::destroy_group(name);
        const nb::gil_scoped_acquire locked;
        unwrap(std::move(done));
      },
      nb::arg("name"));
  core.def("_workers_here", [] { return unwrap(train::workers_here()); });
  core.def(
      "_group_ranks", [](const std::string& name) { return unwrap(train::group_ranks(name)); },
      nb::arg("name"));
}

}  // namespace muster::python
