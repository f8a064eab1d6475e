#include "muster/server/server_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster::server {
namespace {

// Pulls of one worker that wait: this step's, and those of later ones, one for each table.
constexpr std::size_t waiting_per_worker_max = 2 * 4096;

}  // namespace

ServerMachine::ServerMachine(ServerConfig config)
    : config_(config),
      base_(config.worker_num),
      next_(config.worker_num),
      kept_(config.worker_num),
      waiting_(config.worker_num),
      ends_(config.worker_num) {}

Result<Actions> ServerMachine::restore(const Restored& restored) {
  if (!restored.base.empty()) base_ = restored.base;
  if (base_.size() != config_.worker_num)
    return fail(Code::refused, fmt::format("the rows are of a job of {} workers, and MS_WORKER_NUM is {}",
                                           base_.size(), config_.worker_num));
  next_ = base_;
  applied_ = begin_ = *std::min_element(base_.begin(), base_.end());
  for (const LogRecord& record : restored.log) {
    if (const auto* generation = std::get_if<GenerationRecord>(&record)) {
      if (is_untouched()) set_origin(generation->origin);
      origin_ = generation->origin;
      forget_from(generation->begin);
      generation_ = generation->generation;
      begin_ = generation->begin;
      continue;
    }
    const auto& push = std::get<PushRecord>(record);
    if (push.worker < config_.worker_num && push.step < base_[push.worker]) continue;  // the base has it
    if (push.worker >= config_.worker_num || push.step != next_[push.worker])
      return fail(Code::corrupt, fmt::format("the log of pushes has step {} of worker {} out of its order",
                                             push.step, push.worker));
    hold(push);
  }
  (restored.is_kept ? kept_ : restored_) = next_;
  apply_again();
  return take_actions();
}

Actions ServerMachine::restored_kept() {
  for (std::uint32_t worker = 0; worker < restored_.size(); ++worker) {
    kept_[worker] = std::max(kept_[worker], restored_[worker]);
    tell_taken(worker, false);
  }
  restored_.clear();
  return take_actions();
}

Actions ServerMachine::receive(const ToServer& message) {
  std::visit([this](const auto& each) { hear(each); }, message);
  return take_actions();
}

Actions ServerMachine::log_kept(std::uint64_t records) {
  std::vector<bool> changed(config_.worker_num);
  const auto end =
      std::find_if(unkept_.begin(), unkept_.end(), [&](const Unkept& u) { return u.record >= records; });
  for (auto each = unkept_.begin(); each != end; ++each) {
    kept_[each->worker] = std::max(kept_[each->worker], each->step + 1);
    changed[each->worker] = true;
  }
  unkept_.erase(unkept_.begin(), end);
  for (std::uint32_t worker = 0; worker < config_.worker_num; ++worker)
    if (changed[worker]) tell_taken(worker, false);
  return take_actions();
}

void ServerMachine::base_moved(const Position& base) {
  for (std::uint32_t worker = 0; worker < config_.worker_num; ++worker)
    MUSTER_CHECK(base[worker] >= base_[worker] && base[worker] <= common_point_,
                 "a base of parameter servers went back, or beyond the common point");
  base_ = base;
  for (auto& [step, pushes] : held_)
    for (std::uint32_t worker = 0; worker < pushes.size(); ++worker)
      if (step < base_[worker]) pushes[worker] = {};
  std::erase_if(held_, [](const auto& each) {
    return std::none_of(each.second.begin(), each.second.end(),
                        [](const Held& push) { return push.is_there; });
  });
}

std::uint64_t ServerMachine::base() const { return *std::max_element(base_.begin(), base_.end()); }

Position ServerMachine::position() const {
  return config_.staleness ? Position(config_.worker_num, applied_) : next_;
}

std::vector<LogRecord> ServerMachine::carried() const {
  std::vector<LogRecord> records;
  if (generation_ > 0)
    records.emplace_back(GenerationRecord{.generation = generation_, .begin = begin_, .origin = origin_});
  const Position in_rows = position();
  for (const auto& [step, pushes] : held_)
    for (std::uint32_t worker = 0; worker < pushes.size(); ++worker)
      if (pushes[worker].is_there && step >= in_rows[worker])
        records.emplace_back(PushRecord{.worker = worker, .step = step, .body = pushes[worker].body});
  return records;
}

std::uint64_t ServerMachine::applied() const {
  return config_.staleness ? applied_ : *std::min_element(next_.begin(), next_.end());
}

ServerMachine::Waiting ServerMachine::waiting() const {
  Waiting found;
  for (const auto& pulls : waiting_)
    if (std::ranges::any_of(pulls, [](const auto& each) { return !each.second.pull.is_ahead; }))
      ++found.workers;
  for (std::uint32_t worker = 0; found.workers > 0 && worker < config_.worker_num; ++worker)
    if (next_[worker] <= applied_ && found.missing++ == 0) found.first_missing = worker;
  return found;
}

template <class Message>
bool ServerMachine::admits(const Message& message) {
  if (message.worker >= config_.worker_num)
    refuse(message,
           fmt::format("there is no worker {}: MS_WORKER_NUM is {}", message.worker, config_.worker_num));
  else if (message.generation < generation_)
    refuse(message, fmt::format("worker {} is of generation {}, which has ended: it is generation {} now",
                                message.worker, message.generation, generation_));
  // One of a generation without a hello was overtaken by it: it will be sent again.
  return message.worker < config_.worker_num && message.generation == generation_;
}

bool ServerMachine::is_untouched() const {
  return origin_ == 0 && held_.empty() && base() == 0 &&
         std::ranges::all_of(next_, [](std::uint64_t next) { return next == 0; });
}

void ServerMachine::set_origin(std::uint64_t origin) {
  origin_ = applied_ = origin;
  base_.assign(config_.worker_num, origin);
  next_.assign(config_.worker_num, origin);
  kept_.assign(config_.worker_num, origin);
}

bool ServerMachine::hear_origin(const Hello& hello) {
  if (!hello.origin || *hello.origin == origin_) return true;
  if (!is_untouched()) return false;
  set_origin(*hello.origin);
  if (hello.generation != generation_) return true;
  append(GenerationRecord{.generation = generation_, .begin = begin_, .origin = origin_});
  for (std::uint32_t worker = 0; worker < config_.worker_num; ++worker)  // those who were told of step 0
    if (worker != hello.worker) tell_taken(worker, true);
  return true;
}

void ServerMachine::hear(const Hello& hello) {
  if (hello.worker < config_.worker_num && hello.generation >= generation_ && !hear_origin(hello))
    return refuse(hello,
                  fmt::format("worker {} begins the job at step {}, and its rows begin at step {}: load the "
                              "same checkpoint in all workers",
                              hello.worker, *hello.origin, origin_));
  if (hello.worker < config_.worker_num && hello.generation > generation_) {
    if (hello.begin < base())
      return refuse(hello,
                    fmt::format("worker {} goes back to step {}, and the rows are kept from step {} on: "
                                "MUSTER_FRESH=1 begins the job anew",
                                hello.worker, hello.begin, base()));
    begin_generation(hello.generation, hello.begin);
  }
  if (!admits(hello)) return;
  if (hello.begin != begin_)
    return refuse(hello, fmt::format("generation {} begins at step {}, but for worker {} at step {}",
                                     generation_, begin_, hello.worker, hello.begin));
  // It sends again what it lacks.
  waiting_[hello.worker].clear();
  tell_taken(hello.worker, true);
}

void ServerMachine::hear(const Push& push) {
  if (!admits(push)) return;
  if (push.step != next_[push.worker])
    return tell_taken(push.worker, false);  // a repetition, or one too early
  append(PushRecord{.worker = push.worker, .step = push.step, .body = push.body});
  hold({.worker = push.worker, .step = push.step, .body = push.body});
  if (!config_.staleness) actions_.push_back(Apply{.step = push.step, .bodies = {push.body}});
  apply_complete_steps();
  answer_waiting();
}

void ServerMachine::hear(const Pull& pull) {
  if (!admits(pull)) return;
  auto& waiting = waiting_[pull.worker];
  if (waiting.contains(pull.serial)) return;
  if (may_answer(pull.step)) return answer({.pull = pull});  // those that wait may not
  if (const auto left = never_pushes_for(pull)) return refuse_endless(pull, *left);
  if (waiting.size() >= waiting_per_worker_max)
    return refuse(
        pull, fmt::format("worker {} has more than {} pulls that wait", pull.worker, waiting_per_worker_max));
  WaitingPull& added = waiting[pull.serial];
  added.pull = pull;
  if (!pull.is_ahead) return;
  added.previewed = applied_;
  actions_.push_back(Preview{.pull = pull, .applied = applied_});
}

// A point counts only when all servers have kept the pushes before it.
void ServerMachine::hear(const CommonPoint& point) {
  if (!admits(point)) return;
  const auto behind =
      std::find_if(next_.begin(), next_.end(), [&](std::uint64_t next) { return next < point.step; });
  if (behind != next_.end())
    return refuse(
        point,
        fmt::format("the disk of parameter server {} has lost the pushes of worker {} from step {} on{}, and "
                    "all workers' points are of step {}: MUSTER_FRESH=1 begins the job anew",
                    config_.server, behind - next_.begin(), *behind,
                    config_.other_holder
                        ? fmt::format(" (and so has parameter server {}, which has the same rows)",
                                      *config_.other_holder)
                        : "",
                    point.step));
  common_point_ = std::max(common_point_, point.step);
}

void ServerMachine::hear(const Leave& leave) {
  if (!admits(leave)) return;
  ends_[leave.worker] = leave.step;
  for (auto& pulls : waiting_)
    std::erase_if(pulls, [this](const auto& each) {
      const auto left = never_pushes_for(each.second.pull);
      if (left) refuse_endless(each.second.pull, *left);
      return left.has_value();
    });
}

void ServerMachine::begin_generation(std::uint64_t generation, std::uint64_t begin) {
  append(GenerationRecord{.generation = generation, .begin = begin, .origin = origin_});
  generation_ = generation;
  begin_ = begin;
  for (auto& pulls : waiting_) pulls.clear();
  ends_.assign(config_.worker_num, std::nullopt);
  const bool was_applied = forget_from(begin);
  for (std::uint64_t& kept : kept_) kept = std::min(kept, begin);
  for (std::uint64_t& restored : restored_) restored = std::min(restored, begin);
  std::erase_if(unkept_, [&](const Unkept& each) { return each.step >= begin; });
  if (!was_applied) return;
  actions_.push_back(Reset{});
  apply_again();
}

bool ServerMachine::forget_from(std::uint64_t step) {
  const bool any_comes_alone = !config_.staleness && held_.lower_bound(step) != held_.end();
  const bool was_applied = any_comes_alone || applied_ > step;
  held_.erase(held_.lower_bound(step), held_.end());
  for (std::uint32_t worker = 0; worker < config_.worker_num; ++worker)
    next_[worker] = std::min(next_[worker], std::max(step, base_[worker]));
  return was_applied;
}

void ServerMachine::hold(const PushRecord& push) {
  auto& step = held_[push.step];
  step.resize(config_.worker_num);
  step[push.worker] = {.body = push.body, .order = taken_++, .is_there = true};
  ++next_[push.worker];
}

void ServerMachine::apply_again() {
  applied_ = *std::min_element(base_.begin(), base_.end());
  if (config_.staleness) return apply_complete_steps();
  std::map<std::uint64_t, Apply> by_order;
  for (const auto& [step, pushes] : held_)
    for (const Held& push : pushes)
      if (push.is_there) by_order[push.order] = {.step = step, .bodies = {push.body}};
  for (auto& [order, apply] : by_order) actions_.push_back(std::move(apply));
}

void ServerMachine::apply_complete_steps() {
  if (!config_.staleness) return;
  const std::uint64_t complete = *std::min_element(next_.begin(), next_.end());
  for (; applied_ < complete; ++applied_) {
    Apply apply{.step = applied_, .bodies = {}};
    for (const Held& push : held_.at(applied_)) apply.bodies.push_back(push.body);
    actions_.push_back(std::move(apply));
  }
}

void ServerMachine::answer_waiting() {
  for (auto& pulls : waiting_)
    std::erase_if(pulls, [this](const auto& each) {
      if (!may_answer(each.second.pull.step)) return false;
      answer(each.second);
      return true;
    });
}

void ServerMachine::answer(const WaitingPull& waiting) {
  actions_.push_back(
      Answer{.pull = waiting.pull, .applied = config_.staleness ? applied_ : 0, .since = waiting.previewed});
}

bool ServerMachine::may_answer(std::uint64_t step) const {
  return !config_.staleness || step <= applied_ || step - applied_ <= *config_.staleness;
}

// Who asks ahead does not wait: the pull of the step itself is told.
std::optional<std::uint32_t> ServerMachine::never_pushes_for(const Pull& pull) const {
  if (!config_.staleness || pull.is_ahead) return std::nullopt;
  for (std::uint32_t worker = 0; worker < config_.worker_num; ++worker) {
    if (!ends_[worker]) continue;
    const std::uint64_t end = std::max(*ends_[worker], next_[worker]);
    if (pull.step > end && pull.step - end > *config_.staleness) return worker;
  }
  return std::nullopt;
}

void ServerMachine::refuse_endless(const Pull& pull, std::uint32_t left) {
  refuse(pull,
         fmt::format("worker {} has left the job before step {}, and worker {} waits in step {} for its "
                     "gradients: all workers make the same number of steps; give each as many batches",
                     left, *ends_[left], pull.worker, pull.step));
}

void ServerMachine::append(LogRecord record) {
  if (const auto* push = std::get_if<PushRecord>(&record))
    unkept_.push_back({.record = records_, .worker = push->worker, .step = push->step});
  ++records_;
  actions_.push_back(Append{std::move(record)});
}

void ServerMachine::tell_taken(std::uint32_t worker, bool is_welcome) {
  actions_.push_back(Send{worker, Taken{.generation = generation_,
                                        .next = next_[worker],
                                        .kept = kept_[worker],
                                        .origin = origin_,
                                        .is_welcome = is_welcome}});
}

}  // namespace muster::server
