// Private to train: state that a process has once. The module has no other state that changes (ADR 27).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "muster/base/base.h"
#include "muster/base/state_clock.h"
#include "muster/cluster/cluster.h"
#include "muster/graph/graph.h"
#include "muster/train/context.h"
#include "muster/train/data_settings.h"
#include "muster/train/front_end.h"
#include "muster/train/page_requests.h"
#include "muster/train/parameter_servers.h"
#include "muster/train/ps_context.h"
#include "muster/train/recovering_call.h"
#include "muster/train/step_marks.h"

namespace muster::train {

class Explainer;
class NamedGroups;
class ProfileRecorder;
class ServedParameters;
class Session;
class StepLines;
class StepPlanner;
class WrittenParameters;
struct JobCommunicators;
struct MetricQueues;

// What the script has chosen, before init() or between steps. Main thread.
struct Choices {
  Context context;
  PsContext ps_context;
  ParameterServers parameter_servers;
  DataSettings data;
  std::optional<std::uint64_t> seed;
  int threads = 0;          // for kernels; 0: not yet chosen
  cluster::Traits program;  // what runs, as the language above says; empty: the executable
};

// What the main thread does: activity_scope.h. Any thread.
struct MainActivity {
  // The main thread: who asked for this struct first, then who opened the job or began a profile.
  std::atomic<std::thread::id> thread{std::this_thread::get_id()};
  std::atomic<cluster::WorkPhase> phase{cluster::WorkPhase::starting};
  std::atomic<std::uint64_t> finished{0};
  std::atomic<std::uint64_t> train_epoch{0};
  std::atomic<cluster::Awaited> awaited{};  // parameter servers
  StateClock clock;                         // runs in a job
};

// Numbers of the training that runs, which travel with the heartbeat: training_numbers.h.
struct TrainingNumbers {
  // NaN where there is none; a loss that is NaN has another bit pattern.
  std::atomic<std::uint64_t> loss_bits{no_number};
  std::atomic<std::uint64_t> learning_rate_bits{no_number};
  std::atomic<std::uint64_t> samples{0};
  std::atomic<std::uint32_t> stage{0};
  // A letter box: who reads takes what lies in it. Without a lock, which a forked child could find taken.
  std::atomic<std::vector<std::pair<std::string, double>>*> metrics{nullptr};
  std::vector<std::pair<std::string, double>> last_metrics;  // of who reads
  TimePoint rate_due{};                                      // of the main thread
  StepMarks marks;

  static constexpr std::uint64_t no_number = ~std::uint64_t{0};
};

// profile_recorder.h. The recorder stays when a profile ends, since a run may still hold it.
struct ProfileState {
  std::atomic<ProfileRecorder*> active{nullptr};
  ProfileRecorder* recorder = nullptr;
};

// What has been asked of the pipeline layout: pipeline_layout.h. Main thread, but for `thread`.
struct LayoutQuestions {
  // The placed ranks of the networks at work on `thread`; nothing: those of the process count.
  std::atomic<std::thread::id> thread{};
  std::optional<std::uint32_t> ranks_at_work;
  // The placed ranks when the script asked for the number of replicas of the process, and all such numbers.
  std::optional<std::uint32_t> asked_at;
  std::set<std::uint32_t> answered;
};

// An optimizer whose updates are watched: updates.h. None of it is kept alive.
struct WatchedOptimizer {
  std::weak_ptr<graph::Parameter> global_step;
  std::vector<std::weak_ptr<graph::Parameter>> parameters = {};
  std::uint64_t number = 0;     // of those of this process
  std::uint64_t trainings = 0;  // how often its steps have begun anew in this epoch of the cluster
  std::int64_t step = 0;        // that was seen last
  std::int64_t due = 1;         // at which step its parameters are looked at next
  std::shared_ptr<std::int64_t> calls = {};  // counted instead of steps, where it counts none itself
};

// One that has made a step in this process, or was traced for it. None of it is kept alive.
struct SeenOptimizer {
  std::weak_ptr<graph::Parameter> global_step;
  std::vector<std::weak_ptr<graph::Parameter>> parameters = {};
};

struct UpdateWatch {
  std::vector<SeenOptimizer> seen;
  std::vector<WatchedOptimizer> optimizers;
  std::uint64_t count = 0;    // of all that were watched
  std::uint64_t look_at = 0;  // the run before which they are looked at next
  std::uint64_t epoch = 0;    // of the cluster
  bool has_reduced = false;   // anything over the workers
  // Of the last step's batch, where all workers are given the whole of it.
  std::optional<std::uint32_t> batch_hash = {};
};

// loss_watch.h. Main thread.
struct NumberWatch {
  const std::int64_t* model_step = nullptr;     // of the training of a Model that runs; null: none does
  std::weak_ptr<graph::Parameter> global_step;  // of the optimizer that was called or traced last
  bool told = false;                            // of a loss that is no number
  std::uint64_t steps_by_hand = 0;              // of all loops: see note_step_by_hand
  std::int64_t steps_counted = 0;               // by optimizers, as far as told: see note_counted_steps
};

// The body of a recoverable loop: aborted_step.h.
struct LoopBody {
  // A plan may send on one thread while it receives on another.
  std::atomic<RecoveringCall*> call{nullptr};  // null: no body runs
  std::atomic<bool> is_aborted{false};
  // Of the main thread.
  std::thread::id thread = {};
  std::uint64_t steps = 0;
  std::uint64_t writes = 0;  // to parameters, when it began
  bool has_called = false;   // others
  std::optional<RecoveringCall::Start> start = {};
};

struct Process {
  Session* session = nullptr;  // open
  cluster::Role role = cluster::Role::worker;
  bool trains_alone = false;                      // init() was called where no cluster is described
  JobCommunicators* communicators = nullptr;      // of the session: run_context.cpp
  ServedParameters* served_parameters = nullptr;  // of the session
  bool has_joined_servers = false;                // set_ps_context(enable_ps=True) was called before init()
  NamedGroups* named_groups = nullptr;            // named_groups.cpp
  std::atomic<RecoveringCall*> call{nullptr};     // under way; simulated processes share it
  LoopBody body;
  std::atomic<WrittenParameters*> written{nullptr};  // that watch: of the loop that recovers
  std::atomic<int> trainings{0};                     // of Models, under way: their callbacks may evaluate
  std::uint64_t runs = 0;                            // of plans, counted: where random numbers stand
  Choices choices;
  const std::uint64_t drawn_seed = entropy();  // where neither the script nor the job says one
  FrontEnd front_end;
  MainActivity activity;
  TrainingNumbers training;
  ProfileState profile;
  LayoutQuestions layout;
  UpdateWatch updates;
  NumberWatch numbers;
  Explainer* explainer = nullptr;                        // in a process that `muster explain` has started
  std::atomic<graph::RunObserver*> cost_watch{nullptr};  // cost_watch.h; it stays when it has told
  StepLines* step_lines = nullptr;                       // step_lines.h; set before the first step
  bool has_compared_inputs = false;                      // over a mesh: shared_inputs.h
  StepPlanner* planner = nullptr;                        // of parallel.plan(): step_planner.h
  std::shared_ptr<data::ItemTimes> item_times;           // of all passes, where steps are predicted
  std::atomic<MetricQueues*> metric_queues{nullptr};     // metric_writer.cpp
  std::string metrics_file;                              // MUSTER_METRICS_FILE, or empty
  std::set<std::string> warnings_given;
  std::string page_requests_folder;  // MUSTER_PAGE_REQUESTS, or empty
  PageRequestCounts page_requests_done;
  std::optional<std::uint64_t> kept_seed;  // in the folder of the run
};

// Never destroyed: threads and exit handlers may look at it until the very end of the process.
Process& process();

}  // namespace muster::train
