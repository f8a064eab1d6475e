#include "muster/cluster/scheduler/observer_desk.h"

#include <fmt/format.h>

#include <algorithm>

#include "muster/cluster/scheduler/job.h"
#include "muster/cluster/scheduler/status.h"
#include "muster/cluster/wire.h"

namespace muster::cluster {
namespace {

constexpr Duration status_lifetime = std::chrono::milliseconds(250);

}  // namespace

bool ObserverDesk::serve(PeerId id, const Message& message) {
  if (std::holds_alternative<message::StatusRequest>(message.body)) {
    tell_status(id);
    return true;
  }
  if (const auto* echo = std::get_if<message::Echo>(&message.body)) {
    if (observers_.may_echo(id, echo->filling.size()))
      job_.send(id, *echo);
    else
      job_.refuse(id, fmt::format("it has measured with more than {} bytes", echo_budget_bytes));
    return true;
  }
  if (const auto* meeting = std::get_if<message::MeetDoctors>(&message.body)) {
    if (observers_.meet(id, meeting->self))
      tell_doctors();
    else
      job_.refuse(id, fmt::format("it is here already, or {} doctors are", doctors_max));
    return true;
  }
  if (const auto* request = std::get_if<message::StacksRequest>(&message.body)) {
    stacks.ask(id, *request);
    return true;
  }
  if (const auto* ended = std::get_if<message::EndedEarly>(&message.body)) {
    ended_early(ended->node_id);
    tell_status(id);
    return true;
  }
  return false;
}

// Who has registered ends by its own words. A job that has formed before is not waited for here.
void ObserverDesk::ended_early(const std::string& node_id) {
  const bool has_registered = std::ranges::any_of(job_.peers, [&](const auto& entry) {
    return entry.second.member.role == Role::worker && entry.second.member.node_id == node_id;
  });
  if (!job_.is(JobState::forming) || has_registered) return;
  job_.fail(
      {Code::aborted,
       fmt::format("worker {} ended with status 0 before it had called init(), and the others wait for it: "
                   "every worker of a job calls muster.init() (mindspore.communication.init()) before its "
                   "script ends",
                   node_id),
       1});
}

// All who ask within a moment get the same words, which then cost once what they cost.
void ObserverDesk::tell_status(PeerId id) {
  if (status_ == nullptr || job_.now >= status_until_) {
    status_ = job_.message_of(status_of(job_));
    status_until_ = job_.now + status_lifetime;
  }
  job_.share(id, status_);
  job_.close(id);
}

void ObserverDesk::forget(PeerId id) {
  if (observers_.left(id)) tell_doctors();
  stacks.forget(id);
}

void ObserverDesk::check() {
  if (job_.now >= status_until_) status_.reset();
  stacks.check();
}

void ObserverDesk::tell_doctors() {
  message::Doctors all;
  for (const auto& [id, doctor] : observers_.doctors()) all.doctors.push_back(doctor);
  for (const auto& [id, doctor] : observers_.doctors()) job_.send(id, all);
}

}  // namespace muster::cluster
