// This process's part in the job: init, ranks, seed, context, reducer.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/train/train.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/parameter.h"
#include "python/muster/bindings/process.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

// Looks for signals while init() waits without the interpreter lock: a handler that raises (Ctrl-C) ends the
// wait.
class Interruption {
 public:
  bool operator()() {
    const nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() == 0) return false;
    raised_.emplace();
    return true;
  }
  void raise_again() {
    if (!raised_) return;
    raised_->restore();
    throw nb::python_error();
  }

 private:
  std::optional<nb::python_error> raised_;
};

// Python's streams and C's. Errors of a closed stream are of no interest to a process that ends.
void flush_streams() {
  for (const char* name : {"stdout", "stderr"}) {
    PyObject* stream = PySys_GetObject(name);  // borrowed
    if (stream == nullptr || stream == Py_None) continue;
    const nb::object flushed = nb::steal(PyObject_CallMethod(stream, "flush", nullptr));
    if (!flushed.is_valid()) PyErr_Clear();
  }
  std::fflush(nullptr);
}

// The scheduler and servers run the same script as the workers; their part in it ends inside of init(), and
// the process with it, so that no `except` of the script goes on without a rank.
[[noreturn]] void end_process(int status) {
  flush_streams();
  _exit(status);
}

bool trains(const Environment& environment) {
  const auto role = environment.get("MS_ROLE");
  return !role || (*role != "MS_SCHED" && *role != "MS_PSERVER");
}

// That the failure of the job asks for, once it has failed.
int job_exit_code() {
  const auto failure = train::job_failure();
  return failure ? failure->exit_code : 0;
}

void init() {
  Interruption interruption;
  const auto role = [&] {
    const nb::gil_scoped_release unlocked;
    return train::init(real_environment(), {.interrupted = [&] { return interruption(); }});
  }();
  interruption.raise_again();
  if (role && *role == train::Role::worker) return;
  if (role) end_process(0);
  const train::Failure& failure = role.error();
  process().init_exit_code = failure.exit_code;
  if (trains(real_environment())) raise(Error{failure.code, failure.message});
  log::error(failure.message);
  end_process(failure.exit_code);
}

// Called in a process that is about to be ended by the watch, on a thread of its own.
void flush_from_outside() {
  if (!Py_IsInitialized()) return;
  const nb::gil_scoped_acquire lock;
  flush_streams();
}

// Python ends itself by the signal afterwards, without a word to the job. Where processes may come back that
// is one more death, else the end of the job.
void leave_interrupted() {
  if (!train::job_recovers()) train::leave_job(cluster::exit_code_interrupted);
}

nb::tuple reduced(train::DistributedReducer& reducer, nb::handle gradients) {
  graph::Values values;
  for (const nb::handle gradient : nb::iter(gradients)) {
    if (!is_value(gradient)) throw nb::type_error("the reducer takes one gradient tensor for each parameter");
    values.push_back(nb::cast<const graph::Value&>(gradient));
  }
  if (graph::is_tracing()) return tuple_of(unwrap(reducer.trace(values)), &tensor_result);
  std::vector<Tensor> tensors;
  for (const graph::Value& value : values)
    // What another worker has stays what it is.
    tensors.push_back(value.is_concrete() ? value.tensor() : elements_of(value));
  Result<std::vector<Tensor>> answer;
  {
    const nb::gil_scoped_release unlocked;
    answer = reducer.reduce(tensors);
  }
  return tuple_of(unwrap(std::move(answer)), &tensor_object);
}

void set_mode(const std::string& mode) {
  if (mode != "graph" && mode != "eager")
    raise(Error{Code::invalid_argument, "mode is 'graph' or 'eager', not '" + mode + "'"});
  train::set_mode(mode == "eager" ? train::Mode::eager : train::Mode::graph);
}

// What detect_anomaly returns: at the end of a `with` block what was before it holds again.
struct AnomalyScope {
  bool before = false;
};

AnomalyScope detect_anomaly(bool mode) {
  const AnomalyScope made{train::detects_anomaly()};
  train::detect_anomaly(mode);
  return made;
}

void bind_anomalies(nb::module_& core) {
  nb::class_<AnomalyScope>(core, "AnomalyScope", "What detect_anomaly returns, for `with`.")
      .def(
          "__enter__", [](nb::object self) { return self; }, nb::sig("def __enter__(self) -> typing.Self"))
      .def(
          "__exit__", [](const AnomalyScope& self, const nb::args&) { train::detect_anomaly(self.before); },
          nb::arg("args"));
  core.def(
      "detect_anomaly", &detect_anomaly, nb::arg("mode") = true,
      "Looks at what each op gives, forward and backward and in updates, of a Model and in loops by hand: "
      "the first one that gives NaN, or infinity from finite numbers, raises ValueError with the op, its "
      "cell and line, the step and the worker, how many elements are so and where the first is. From here "
      "on, or for a `with` block; `mode=False` turns it off. The variable MUSTER_DETECT_ANOMALY=1 does the "
      "same from the start. Functions and cells are traced anew, and each op is run by itself: a step takes "
      "several times as long, and may round otherwise. Off, it costs nothing.");
}

void set_context(std::optional<std::string> mode, std::optional<std::string> device_target) {
  if (device_target) unwrap(train::check_device_target(*device_target));
  if (mode) set_mode(*mode);
}

void set_auto_parallel_context(std::optional<std::string> parallel_mode, std::optional<bool> gradients_mean,
                               std::optional<std::int64_t> bucket_bytes,
                               std::optional<std::vector<std::int64_t>> bucket_splits, nb::handle zero) {
  if (bucket_bytes && bucket_splits)
    raise(Error{Code::invalid_argument,
                "gradients are bucketed by bucket_bytes or by bucket_splits, not both"});
  if (bucket_splits && bucket_splits->empty())
    raise(Error{Code::invalid_argument, "bucket_splits is empty: give positions from 1, or bucket_bytes"});
  if (bucket_bytes) unwrap(train::set_buckets({.bytes = *bucket_bytes}));
  if (bucket_splits) unwrap(train::set_buckets({.splits = *std::move(bucket_splits)}));
  if (parallel_mode) train::set_parallel_mode(unwrap(train::parallel_mode_from_string(*parallel_mode)));
  if (gradients_mean) train::set_gradients_mean(*gradients_mean);
  if (!zero.is_none())
    unwrap(train::set_zero({.level = nb::cast<std::int64_t>(zero.attr("level")),
                            .threshold_bytes = nb::cast<std::int64_t>(zero.attr("threshold_bytes"))}));
}

// Steps that a worker may be ahead; None: as many as it likes.
std::optional<std::uint64_t> staleness_from(nb::handle staleness) {
  if (staleness.is_none()) return std::nullopt;
  const bool is_number = nb::isinstance<nb::int_>(staleness) && !nb::isinstance<nb::bool_>(staleness);
  if (!is_number) throw nb::type_error("set_ps_context: staleness is a whole number of steps, or None");
  std::int64_t steps = 0;
  if (!nb::try_cast(staleness, steps))
    throw nb::value_error(
        "set_ps_context: staleness is a number below 2**63, or None: as many steps as it likes");
  if (steps < 0)
    throw nb::value_error(
        ("set_ps_context: staleness is " + std::to_string(steps) + "; it must be at least 0, or None")
            .c_str());
  return static_cast<std::uint64_t>(steps);
}

void set_ps_context(std::optional<bool> enable_ps, nb::handle staleness, std::optional<bool> enable_ssl,
                    std::optional<std::filesystem::path> config_file_path,
                    std::optional<std::string> client_password, std::optional<std::string> server_password) {
  train::ParameterServers servers = train::parameter_servers();
  if (enable_ps) servers.enabled = *enable_ps;
  if (!staleness.is(nb::ellipsis())) servers.staleness = staleness_from(staleness);
  unwrap(train::set_parameter_servers(servers));
  std::optional<std::string> path;
  if (config_file_path) path = config_file_path->string();
  unwrap(train::set_ps_context({.enable_ssl = enable_ssl,
                                .config_file_path = std::move(path),
                                .client_password = std::move(client_password),
                                .server_password = std::move(server_password)}));
}

nb::object get_ps_context(const std::string& attr_key) {
  const train::PsContext& context = train::ps_context();
  if (attr_key == "enable_ps") return nb::bool_(train::parameter_servers().enabled);
  if (attr_key == "staleness") return nb::cast(train::parameter_servers().staleness);
  if (attr_key == "enable_ssl") return nb::bool_(context.enable_ssl);
  if (attr_key == "config_file_path") return nb::cast(context.config_file_path);
  const bool is_password = attr_key == "client_password" || attr_key == "server_password";
  raise(Error{Code::invalid_argument,
              "get_ps_context('" + attr_key + "'): " +
                  (is_password ? "passwords are not told"
                               : "choose enable_ps, staleness, enable_ssl or config_file_path")});
}

void bind_ranks(nb::module_& core) {
  core.def(
      "get_rank", [] { return unwrap(train::get_rank()); }, "This worker's rank, from 0. After init().");
  core.def(
      "get_group_size", [] { return unwrap(train::get_group_size()); },
      "The world size: the number of workers of the job. After init().");
  core.def(
      "get_local_rank", [] { return unwrap(train::get_local_rank()); },
      "This worker's rank among the workers of this host. After init().");
  core.def(
      "get_local_rank_size", [] { return unwrap(train::get_local_rank_size()); },
      "The local world size: the number of workers of the job on this host. After init().");
  core.def(
      "get_replica_rank", [](const nn::Cell* network) { return unwrap(train::get_replica_rank(network)); },
      nb::arg("network").none() = nb::none(),
      "Which replica of a placed network this worker is a part of, from 0: the shard_id of its dataset in a "
      "data-parallel job. All workers are parts of replica 0, unless the parallel mode is 'data_parallel'; "
      "without place() each worker of a data-parallel job has its own. After init() and after the network "
      "was made. A script that places several networks on unlike numbers of ranks names the `network`; else "
      "all that is placed counts.");
  core.def(
      "get_replica_count", [](const nn::Cell* network) { return unwrap(train::get_replica_count(network)); },
      nb::arg("network").none() = nb::none(),
      "How many replicas of a placed network there are: the num_shards of a dataset in a data-parallel job. "
      "It is the world size divided by the placed ranks (1 + the highest rank of place()); ValueError when "
      "that is no whole number. After init() and after the network was made; `network` as in "
      "get_replica_rank.");
}

nb::dict chosen_context() {
  const train::Context& context = train::context();
  nb::dict made;
  made["mode"] = context.mode == train::Mode::eager ? "eager" : "graph";
  made["parallel_mode"] = std::string(train::to_string(context.parallel_mode));
  made["gradients_mean"] = context.gradients_mean;
  made["zero_level"] = context.zero.level;
  made["rank"] = train::rank();
  made["world_size"] = train::world_size();
  return made;
}

void bind_context(nb::module_& core) {
  core.def("_context", &chosen_context);
  core.def("_is_in_eager_mode", [] { return train::context().mode == train::Mode::eager; });
  core.def("set_context", &set_context, nb::kw_only(), nb::arg("mode") = nb::none(),
           nb::arg("device_target") = nb::none(),
           "How and where code runs. `mode` 'graph' (the default) traces cells and functions once and runs "
           "them compiled; 'eager' runs them op by op, so that Python may look at every tensor. "
           "`device_target` is 'CPU'. What is not given stays.");
  core.def(
      "set_auto_parallel_context", &set_auto_parallel_context, nb::kw_only(),
      nb::arg("parallel_mode") = nb::none(), nb::arg("gradients_mean") = nb::none(),
      nb::arg("bucket_bytes") = nb::none(), nb::arg("bucket_splits") = nb::none(),
      nb::arg("zero") = nb::none(),
      nb::sig(
          "def set_auto_parallel_context(*, parallel_mode: str | None = None, gradients_mean: bool | None = "
          "None, bucket_bytes: int | None = None, bucket_splits: collections.abc.Sequence[int] | None = "
          "None, zero: object = None) -> None"),
      "How workers share the training. `parallel_mode` is 'stand_alone' or 'data_parallel'; `gradients_mean` "
      "divides reduced gradients by the number of workers. Where a whole step is one plan (Model.train, "
      "nn.TrainOneStepCell), gradients are reduced in buckets while others are still computed: "
      "`bucket_bytes`, 4 MiB by default, is the most that one collective call carries, but for a gradient "
      "that is larger; `bucket_splits` cuts before these positions instead, in the order in which the "
      "backward pass makes the gradients. The bits of the result do not depend on the buckets. `zero`, a "
      "muster.parallel.Zero, is what workers share instead of each having all of it; it counts for trainings "
      "that begin from then on. What is not given stays.");
  core.def(
      "set_ps_context", &set_ps_context, nb::kw_only(), nb::arg("enable_ps") = nb::none(),
      nb::arg("staleness").none() = nb::ellipsis(), nb::arg("enable_ssl") = nb::none(),
      nb::arg("config_file_path") = nb::none(), nb::arg("client_password") = nb::none(),
      nb::arg("server_password") = nb::none(),
      nb::sig("def set_ps_context(*, enable_ps: bool | None = None, staleness: int | None = ..., enable_ssl: "
              "bool | None = None, config_file_path: str | os.PathLike | None = None, client_password: str | "
              "None = None, server_password: str | None = None) -> None"),
      "Parameter servers and encryption, before init(). `enable_ps`: processes with MS_ROLE=MS_PSERVER hold "
      "the parameters that set_param_ps marks, and update them. `staleness`: how many steps a worker may be "
      "ahead of what is applied there, 0 at first; None: as many as it likes. `enable_ssl` with the JSON "
      "file `config_file_path`, which names certificates, and the passwords of its .p12 files; "
      "MUSTER_TLS_CONFIG and its kin do the same from outside, without a password in the script. What is not "
      "given stays.");
  core.def("get_ps_context", &get_ps_context, nb::arg("attr_key"),
           nb::sig("def get_ps_context(attr_key: str) -> bool | str | int | None"),
           "What set_ps_context chose: 'enable_ps', 'staleness', 'enable_ssl' or 'config_file_path'. "
           "Passwords are not told.");
  core.def(
      "reset_ps_context", [] { unwrap(train::reset_ps_context()); },
      "What set_ps_context chose, back to the defaults. Before init().");
  core.attr("_default_bucket_bytes") = nn::Buckets{}.bytes;
  core.def("reset_auto_parallel_context", &train::reset_parallel_context, "Back to the defaults.");
}

}  // namespace

void bind_session(nb::module_& core) {
  core.def(
      "init", &init,
      "Forms the cluster that the MS_* environment variables describe and waits for all of it. A worker goes "
      "on when all are there. In the scheduler the call runs the scheduler and then ends the process. Where "
      "none of these variables is set, the process is rank 0 of 1. Raises ValueError naming the variable, "
      "TimeoutError, RefusedError or PeerLostError.");
  bind_ranks(core);
  bind_anomalies(core);
  core.def("set_seed", &train::set_seed, nb::arg("seed"),
           "The seed of parameters and shuffles. By default the scheduler hands one to all workers.");
  core.def("_forget_namesakes", &graph::forget_namesakes, "Names of parameters count from the first again.");
  core.def(
      "_run_foreign_scripts",
      [](bool namesakes_differ, bool falls_back) {
        graph::tell_namesakes_apart(namesakes_differ);
        graph::set_runs_untraceable(falls_back);
        graph::set_differentiates_whole_numbers(true);
      },
      nb::arg("namesakes_differ"), nb::arg("falls_back"),
      "What MindSpore's scripts expect: parameters of one name begin differently, code that cannot be "
      "traced runs op by op, and whole numbers have gradients.");
  bind_context(core);
  nb::class_<train::DistributedReducer>(
      core, "DistributedGradReducer",
      "Gradients summed or averaged over all workers: call it with a gradient for each parameter, in order. "
      "The first "
      "call proves that the parameters of all workers are equal, and raises naming one that is not.")
      .def(
          "__init__",
          [](train::DistributedReducer* self, nb::handle parameters, std::optional<bool> mean) {
            new (self) train::DistributedReducer(parameters_from(parameters, "DistributedGradReducer"), mean);
          },
          nb::arg("parameters"), nb::arg("mean") = nb::none(),
          "Without `mean`, set_auto_parallel_context(gradients_mean=...) decides.")
      .def("__call__", &reduced, nb::arg("gradients"),
           nb::sig("def __call__(self, gradients: collections.abc.Iterable[Tensor]) -> tuple[Tensor, ...]"));
  core.def(
      "_note_script",
      [](const nb::bytes& text, const std::string& version) {
        train::note_script({text.c_str(), text.size()}, {"Python's version", version});
      },
      nb::arg("text"), nb::arg("version"));
  core.def("_note_reason", &train::note_reason, nb::arg("reason"));
  core.def("_leave_interrupted", &leave_interrupted);
  core.def("_init_exit_code", [] { return process().init_exit_code; });
  core.def("_job_exit_code", &job_exit_code);
  train::front_end().flush = &flush_from_outside;
  graph::set_context_provider(&train::run_context);
  train::watch_updates();
  graph::set_anomaly_hooks({.line = &line_of_script});
  train::watch_numbers(real_environment());
}

}  // namespace muster::python
