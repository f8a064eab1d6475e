#include "muster/train/page_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>

#include "muster/train/context.h"
#include "muster/train/job.h"
#include "muster/train/process.h"
#include "muster/train/session.h"

namespace muster::train {
namespace {

constexpr std::int64_t look_interval_us = 500'000;
constexpr std::int64_t steps_between_looks_max = 100'000;

bool trains_with_others() {
  return Session::current() != nullptr && world_size() > 1 &&
         context().parallel_mode != ParallelMode::stand_alone;
}

}  // namespace

PageRequestCounts read_page_requests(const std::string& path) {
  const auto bytes = real_files().read(path);
  if (!bytes) return {};
  const std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  long long save = 0, stop = 0;
  if (std::sscanf(text.c_str(), "save %lld stop %lld", &save, &stop) != 2 || save < 0 || stop < 0) return {};
  return {save, stop};
}

// What an earlier training of this process has done is done.
Result<> PageRequests::on_train_begin(CallbackContext& context) {
  done_ = process().page_requests_done;
  looked_step_ = context.cur_step_num;
  looked_at_ = clock_.now();
  return {};
}

PageRequests::Look PageRequests::own_look(std::int64_t step) const {
  const bool reads = rank() == 0 || !trains_with_others();
  const PageRequestCounts asked = reads ? read_page_requests(path_) : PageRequestCounts{};
  const auto since = std::chrono::duration_cast<std::chrono::microseconds>(clock_.now() - looked_at_).count();
  return {.save = asked.save,
          .stop = asked.stop,
          .saved = done_.save,
          .stopped = done_.stop,
          .step_us = since / std::max<std::int64_t>(1, step - looked_step_)};
}

Result<PageRequests::Look> PageRequests::look_together(Look mine) const {
  if (!trains_with_others()) return mine;
  std::vector<Look> all(world_size());
  MUSTER_TRY_VOID(Session::current()->collectives().call_all(
      [&](Communicator& workers) { return workers.all_gather(&mine, all.data(), sizeof mine); }));
  for (const Look& each : all) {
    mine.save = std::max(mine.save, each.save);
    mine.stop = std::max(mine.stop, each.stop);
    mine.saved = std::max(mine.saved, each.saved);
    mine.stopped = std::max(mine.stopped, each.stopped);
    mine.step_us = std::max(mine.step_us, each.step_us);
  }
  return mine;
}

Result<> PageRequests::on_train_step_end(CallbackContext& context) {
  const std::int64_t step = context.cur_step_num;
  if (step < next_look_) return {};
  MUSTER_TRY(const Look look, look_together(own_look(step)));
  next_look_ = step + std::clamp<std::int64_t>(look_interval_us / std::max<std::int64_t>(1, look.step_us), 1,
                                               steps_between_looks_max);
  looked_step_ = step;
  looked_at_ = clock_.now();
  done_ = {std::max(look.saved, look.save), std::max(look.stopped, look.stop)};
  process().page_requests_done = done_;
  if (look.save > look.saved) MUSTER_TRY_VOID(save(context));
  if (look.stop > look.stopped) {
    if (rank() == 0)
      log::warning(fmt::format("the training stops behind step {}: asked on the page of the job", step));
    context.request_stop();
  }
  return {};
}

// In a folder of its own for each worker, as `resume` takes it: workers may share a disk.
Result<> PageRequests::save(CallbackContext& context) {
  const std::string folder = fmt::format("{}/rank_{}", saved_folder_, rank());
  std::error_code error;
  std::filesystem::create_directories(folder, error);  // ModelCheckpoint says what is wrong with it
  auto saver = std::make_shared<ModelCheckpoint>(
      ModelCheckpointOptions{.prefix = "asked", .directory = folder, .config = {.keep_checkpoint_max = 0}});
  MUSTER_TRY_VOID(saver->on_train_begin(context));
  MUSTER_TRY_VOID(saver->save(context));
  savers_.push_back(std::move(saver));
  if (rank() == 0)
    log::warning(fmt::format("saving behind step {} in {}: asked on the page of the job",
                             context.cur_step_num, saved_folder_));
  return {};
}

Result<State> PageRequests::state() {
  return State{.text = StateValues()
                           .set("saved", done_.save)
                           .set("stopped", done_.stop)
                           .set("next_look", next_look_)
                           .to_json()};
}

Result<> PageRequests::load_state(const State& state) {
  MUSTER_TRY(const StateValues values, StateValues::from_json(state.text));
  MUSTER_TRY(done_.save, values.integer("saved"));
  MUSTER_TRY(done_.stop, values.integer("stopped"));
  MUSTER_TRY(next_look_, values.integer("next_look"));
  return {};
}

CallbackPtr page_requests_callback() {
  const std::string& folder = process().page_requests_folder;
  if (folder.empty()) return nullptr;
  return std::make_shared<PageRequests>(folder + "/requests", folder + "/saved");
}

}  // namespace muster::train
