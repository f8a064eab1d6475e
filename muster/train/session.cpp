#include "muster/train/session.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <utility>

#include "muster/graph/served.h"
#include "muster/train/activity_scope.h"
#include "muster/train/flight.h"
#include "muster/train/found_jobs.h"
#include "muster/train/network_picture.h"
#include "muster/train/process.h"
#include "muster/train/program.h"
#include "muster/train/served_parameters.h"
#include "muster/train/server_role.h"
#include "muster/train/step_lines.h"
#include "muster/train/training_numbers.h"

namespace muster::train {
namespace {

constexpr auto patience_for_reason = std::chrono::seconds(1);  // why the others cannot be connected

void leave_at_exit(int status, void*) {
  if (Session* const session = Session::current()) session->leave(status);
}

// UCX was never tried on RDMA devices: until then it is for those who ask for it.
collective::Transport transport_of(const cluster::Settings& settings) {
  return settings.transport == "ucx" ? collective::Transport::ucx : collective::Transport::tcp;
}

cluster::Trait parameter_servers_trait(const cluster::Settings& settings) {
  const ParameterServers& chosen = parameter_servers();
  if (!chosen.enabled) return {"set_ps_context", "enable_ps=False"};
  const std::string staleness = chosen.staleness ? std::to_string(*chosen.staleness) : "None";
  const std::string copies =
      settings.server_copies > 1 ? fmt::format(", MUSTER_SERVER_COPIES={}", settings.server_copies) : "";
  return {"set_ps_context", fmt::format("enable_ps=True, staleness={}{}", staleness, copies)};
}

// As the scheduler will know it. The listener is where the other workers will connect.
Result<cluster::Registration> registration_of(const cluster::Settings& settings,
                                              const cluster::Interrupted& interrupted) {
  MUSTER_TRY(cluster::Registration made, cluster::describe_host(settings, interrupted));
  if (settings.enable_recovery && settings.role == cluster::Role::worker)
    made.find_jobs = [path = settings.recovery_path] { return jobs_found_in(path); };
  for (cluster::Trait& trait : program_traits()) made.traits.push_back(std::move(trait));
  if (settings.server_num > 0) made.traits.push_back(parameter_servers_trait(settings));
  return made;
}

}  // namespace

Session* Session::current() { return process().session; }

Session::Session(const cluster::Settings& settings, std::unique_ptr<cluster::Node> node,
                 std::unique_ptr<WorkerGroups> groups, std::unique_ptr<Watch> watch)
    : watch_(std::move(watch)),
      groups_(std::move(groups)),
      node_(std::move(node)),
      membership_(*groups_, *node_, settings.strict),
      collectives_(membership_, *groups_),
      recovery_(membership_, collectives_, *groups_, *node_,
                {.clock = real_clock(), .path = settings.recovery_path, .fresh = settings.fresh}) {}

Session::~Session() { node_.reset(); }  // it calls the others

std::optional<cluster::Failure> Session::open(const cluster::Settings& settings,
                                              const cluster::Interrupted& interrupted) {
  auto registration = registration_of(settings, interrupted);
  if (!registration) return cluster::failure_from(registration.error());
  auto listener = collective::Listener::open(registration->address);
  if (!listener) return cluster::failure_from(listener.error());
  const bool serves = settings.role == cluster::Role::server && parameter_servers().enabled;
  std::optional<net::PortReservation> port;  // of the server, which listens once it knows its job
  if (serves) {
    auto reserved = net::PortReservation::open(registration->address);
    if (!reserved) return cluster::failure_from(reserved.error());
    port = *std::move(reserved);
  }
  registration->data_port = serves ? port->port() : listener->port();
  registration->local_name = listener->local_name();
  auto watch = std::make_unique<Watch>();
  auto joined = cluster::Node::join(settings, *registration, interrupted);
  if (!joined) return std::move(joined).error();
  auto node = *std::move(joined);
  log::set_name(fmt::format("{} {}", to_string(settings.role), node->rank()));
  if (serves) return serve_parameters(settings, *registration, *node, interrupted);
  if (settings.role == cluster::Role::server) return serve_nothing(*registration, *node, interrupted);

  auto groups =
      std::make_unique<WorkerGroups>(node->roster(), *std::move(listener),
                                     WorkerGroups::Options{.clock = real_clock(),
                                                           .rank = node->rank(),
                                                           .address = registration->address,
                                                           .connect_timeout = settings.topo_timeout,
                                                           .call_timeout = settings.receive_timeout,
                                                           .security = registration->security,
                                                           .transport = transport_of(settings),
                                                           .reads_neighbours = settings.reads_neighbours});
  auto recorder = open_flight_recorder(*node, real_environment());
  groups->set_recorder(recorder);
  std::unique_ptr<Session> made(new Session(settings, std::move(node), std::move(groups), std::move(watch)));
  made->recorder_ = std::move(recorder);
  made->follow_cluster();
  if (auto failure = made->connect()) return failure;
  process().session = made.release();
  process().has_joined_servers = parameter_servers().enabled;
  process().served_parameters =
      new ServedParameters(*process().session, {.call_timeout = settings.receive_timeout,
                                                .copies = settings.server_copies,
                                                .shared_from_bytes = settings.server_shared_bytes,
                                                .security = registration->security});
  set_while_waiting([] { Session::current()->membership_.look_for_interruption_of_wait(); });
  start_clock();
  keep_step_lines(process().session->node_->rank(), real_environment());
  if (process().session->node_->rank() == 0) keep_network_picture(real_environment());
  set_activity(cluster::WorkPhase::script);
  on_exit(leave_at_exit, nullptr);
  return std::nullopt;
}

void Session::follow_cluster() {
  watch_->attach(*groups_);
  node_->on_failure([this](const cluster::Failure& failure) { watch_->job_failed(failure); });
  node_->on_epoch(
      {.lost =
           [this](const cluster::Failure& reason) {
             return groups_->lost({Code::peer_lost, reason.message});
           },
       .formed =
           [this](std::shared_ptr<const cluster::Roster> roster) { groups_->formed(std::move(roster)); },
       .left = [this](std::uint64_t epoch, std::uint32_t rank) { groups_->left(epoch, rank); },
       .replaced = [this] { return recovery_.lost_folder(); }});
  if (recorder_)
    node_->on_stacks([recorder = recorder_](const std::string& text) {
      if (const auto kept = recorder->keep_stacks(text); !kept)
        log::warning(
            fmt::format("`muster autopsy` will not know this process's stacks: {}", kept.error().message));
    });
  node_->on_beat(
      [this] {
        cluster::Activity activity = activity_of_main_thread();
        groups_->tell(activity);
        return activity;
      },
      numbers_of_training);
}

// Where processes may come back, the others may be anywhere in their scripts: they connect at the first call.
std::optional<cluster::Failure> Session::connect() {
  if (membership_.recovers()) return std::nullopt;
  const auto connected = groups_->communicator();
  if (connected) return std::nullopt;
  // A peer that died meanwhile: the cluster knows who and how, and says so in a moment.
  const auto reason = watch_->wait_for_failure(patience_for_reason);
  cluster::Failure failure = reason.value_or(cluster::failure_from(connected.error()));
  watch_->stand_down();
  node_->leave(failure.exit_code, failure.message);
  return failure;
}

void Session::leave(int exit_status) {
  if (membership_.in_forked_child()) return;
  set_while_waiting(nullptr);  // a language above may be gone
  watch_->stand_down();
  if (parameter_servers().enabled && exit_status == 0 && !membership_.roster().servers.empty() &&
      graph::served_count() == 0)
    log::warning("the parameter servers of this job held nothing: no parameter was marked with set_param_ps");
  if (exit_status == 0) recovery_.set_done();
  const auto lost_folder = exit_status == 0 ? recovery_.lost_folder() : std::nullopt;  // another one goes on
  process().served_parameters->leave(exit_status == 0 && !lost_folder);
  if (recorder_) recorder_->note_leave(exit_status);
  keep_last_step(real_environment(), membership_.rank(), membership_.highest_step());
  membership_.leave({.exit_status = exit_status, .replaced = lost_folder, .serve = [this] {
                       recovery_.serve_before_leaving();
                     }});
}

}  // namespace muster::train
