#include "muster/server/held_share.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster::server {

HeldShare::HeldShare(net::Loop& loop, Options options, Events events)
    : loop_(loop),
      options_(std::move(options)),
      events_(std::move(events)),
      machine_(options_.config),
      tables_(options_.share, options_.config.worker_num, options_.config.staleness.has_value()) {}

Result<bool> HeldShare::lacks_rows() const {
  return options_.log_path.empty() ? Result<bool>(false) : ServerDisk::is_empty(options_.log_path);
}

Result<> HeldShare::open(bool was_fetched) {
  is_open_ = true;
  if (options_.log_path.empty()) return {};
  disk_ = std::make_unique<ServerDisk>(
      loop_,
      ServerDisk::Options{.path = options_.log_path,
                          .job_id = options_.job_id,
                          .share = options_.share,
                          .log_limit_bytes = options_.log_limit_bytes,
                          .files = options_.files},
      machine_, tables_,
      ServerDisk::Events{.kept = [this](std::uint64_t records) { do_all(machine_.log_kept(records)); },
                         .restored_kept = [this] { do_all(machine_.restored_kept()); },
                         .failed = [this](const Error& error) { fail_with(error); }});
  MUSTER_TRY(const Restored restored, disk_->open(was_fetched));
  MUSTER_TRY(const Actions actions, machine_.restore(restored));
  start_ = std::make_unique<StartProgress>(
      fmt::format("of the log '{}' this parameter server has applied", options_.log_path),
      disk_->log_size_bytes());
  do_all(actions);
  start_.reset();
  return failure_ ? Result<>(fail(*failure_)) : Result<>{};
}

ParameterServer::State HeldShare::state() const {
  return {.rows = tables_.rows(),
          .size_bytes = tables_.size_bytes(),
          .updates = machine_.applied(),
          .waiting = machine_.waiting(),
          .have_workers_left = machine_.have_workers_left()};
}

// ---- What workers say

Result<> HeldShare::hear(std::uint32_t worker, net::Frame frame, const SharedMessage& shared) {
  switch (static_cast<FrameType>(frame.header.type)) {
    case FrameType::hello: {
      MUSTER_TRY(const Hello hello, decode_hello(frame));
      do_all(machine_.receive(hello));
      return {};
    }
    case FrameType::table:
      return hear_table(frame);
    case FrameType::common_point: {
      MUSTER_TRY(const CommonPoint point, decode_common_point(frame));
      do_all(machine_.receive(point));
      return {};
    }
    case FrameType::leave: {
      MUSTER_TRY(const Leave leave, decode_leave(frame));
      do_all(machine_.receive(leave));
      return {};
    }
    case FrameType::save:
      return hear_save(worker, frame);
    case FrameType::pull:
    case FrameType::pull_ahead:
    case FrameType::push:
      return hear_batch(worker, std::move(frame), shared);
    default:
      return fail(Code::corrupt, fmt::format("a worker has sent a frame of type {:#06x}", frame.header.type));
  }
}

Result<> HeldShare::hear_table(const net::Frame& frame) {
  MUSTER_TRY(const TableMessage table, decode_table(frame));
  MUSTER_TRY(const bool is_new, tables_.declare(table.table, table.spec));
  if (!is_new) return {};
  MUSTER_TRY_VOID(tables_.load_saved(table.table, options_.files));
  if (disk_ != nullptr)
    if (const auto written = disk_->write_table(frame.header, frame.payload); !written)
      fail_with(written.error());
  if (disk_ != nullptr && !table.spec.saved.place.empty()) disk_->want_base();
  return check_memory();
}

Result<> HeldShare::check_memory() {
  if (options_.memory_bytes == 0) return {};
  const std::string excess = tables_.excess_of(options_.memory_bytes);
  if (excess.empty()) return {};
  if (options_.refuses_large_tables) return fail(Code::invalid_argument, excess + " (MUSTER_STRICT=1)");
  log::warning(excess);
  return {};
}

Result<> HeldShare::hear_batch(std::uint32_t worker, net::Frame frame, const SharedMessage& shared) {
  const net::FrameHeader header = frame.header;
  MUSTER_TRY(Batch batch, read_batch(std::move(frame.payload)));
  if (batch.worker != worker)
    return fail(Code::corrupt, fmt::format("worker {} has sent a batch of worker {}", worker, batch.worker));
  if (static_cast<FrameType>(header.type) != FrameType::push) {
    MUSTER_TRY_VOID(tables_.check_pull(batch));
    do_all(machine_.receive(
        Pull{.worker = worker,
             .generation = header.epoch,
             .step = header.sequence,
             .serial = header.flags,
             .is_ahead = static_cast<FrameType>(header.type) == FrameType::pull_ahead,
             .body = std::make_shared<WantedRows>(WantedRows{.batch = std::move(batch), .shared = shared})}));
    return {};
  }
  MUSTER_TRY_VOID(tables_.check_push(batch));
  do_all(machine_.receive(Push{.worker = worker,
                               .generation = header.epoch,
                               .step = header.sequence,
                               .body = std::make_shared<HeldPush>(HeldPush{std::move(batch), header})}));
  return {};
}

Result<> HeldShare::hear_save(std::uint32_t worker, const net::Frame& frame) {
  MUSTER_TRY(SaveOrder order, decode_save_order(frame));
  for (const std::uint32_t table : order.tables)
    if (tables_.table(table) == nullptr)
      return fail(Code::invalid_argument,
                  fmt::format("worker {} saves table {}, which is not here", worker, table));
  if (!options_.files.create) return fail(Code::not_provided, "this parameter server saves no rows");
  do_all(
      machine_.receive(Pull{.worker = worker,
                            .generation = frame.header.epoch,
                            .step = frame.header.sequence,
                            .serial = frame.header.flags,
                            .body = std::make_shared<WantedRows>(WantedRows{.to_save = std::move(order)})}));
  return {};
}

// An order of before is not waited for any more.
void HeldShare::save(const Pull& pull, const SaveOrder& order) {
  std::unique_ptr<RowsSave>& place = saves_[pull.worker];
  place.reset();
  const auto tell = [this, worker = pull.worker, generation = pull.generation, step = pull.step,
                     serial = pull.serial](const SaveOutcome& outcome) {
    events_.send(worker,
                 make_frame(options_.job_id, FrameType::saved,
                            {.flags = serial, .epoch = generation, .sequence = step}, encode(outcome)));
  };
  place = std::make_unique<RowsSave>(loop_, tables_, options_.files, options_.share, order, tell);
}

void HeldShare::send(std::uint32_t worker, FrameType type, std::uint64_t generation,
                     std::span<const std::byte> payload) {
  events_.send(worker, make_frame(options_.job_id, type, {.epoch = generation}, payload));
}

// ---- Actions

void HeldShare::do_all(const Actions& actions) {
  const std::uint64_t before = appended_;
  for (const Action& action : actions) {
    const Result<> done = std::visit([this](const auto& each) { return act(each); }, action);
    if (!done) return fail_with(done.error());
  }
  events_.changed();
  if (disk_ != nullptr) {
    if (appended_ != before) disk_->want_kept(appended_);
    disk_->look();
  } else if (appended_ != before) {
    do_all(machine_.log_kept(appended_));  // nothing is ever kept better than now
  }
}

Result<> HeldShare::act(const Append& append) {
  ++appended_;
  return disk_ == nullptr ? Result<>{} : disk_->write(append.record);
}

Result<> HeldShare::act(const Apply& apply) {
  std::vector<const Batch*> batches;
  for (const Body& body : apply.bodies) {
    const auto& push = *static_cast<const HeldPush*>(body.get());
    if (disk_ != nullptr) MUSTER_TRY_VOID(disk_->load(push));
    if (start_ != nullptr) start_->add(push.batch->payload.size());
    batches.push_back(&*push.batch);
  }
  MUSTER_TRY_VOID(tables_.apply(apply.step, batches));
  std::erase_if(sent_early_, [&](const std::weak_ptr<WantedRows>& each) {
    const auto wanted = each.lock();
    if (wanted != nullptr) tables_.note_changes(wanted->batch, apply.step, batches, wanted->changed);
    return wanted == nullptr;
  });
  for (const Body& body : apply.bodies) static_cast<const HeldPush*>(body.get())->batch.reset();
  return {};
}

Result<> HeldShare::act(const Reset&) {
  if (disk_ == nullptr)
    return fail(Code::not_provided,
                "workers go back to an earlier step, which parameter servers without a log cannot");
  return disk_->reset_rows();
}

Result<> HeldShare::act(const Answer& answer) {
  const auto& wanted = *static_cast<const WantedRows*>(answer.pull.body.get());
  if (wanted.to_save) {
    save(answer.pull, *wanted.to_save);
    return {};
  }
  if (answer.since) {
    MUSTER_TRY(auto frame, tables_.read_changed(wanted.batch, wanted.changed, answer.applied));
    send_rows(answer.pull, FrameType::rows_changed, *answer.since, std::move(frame));
    return {};
  }
  return send_whole(answer.pull, FrameType::rows, answer.applied);
}

Result<> HeldShare::act(const Preview& preview) {
  // The machine's bodies are const: this one was made here, and no other holds it.
  const auto wanted =
      std::const_pointer_cast<WantedRows>(std::static_pointer_cast<const WantedRows>(preview.pull.body));
  wanted->changed.clear();
  for (const TablePart& part : wanted->batch.parts) wanted->changed.emplace_back(part.ids.size());
  sent_early_.push_back(wanted);
  MUSTER_TRY_VOID(send_whole(preview.pull, FrameType::rows_early, preview.applied));
  wanted->shared = {};
  return {};
}

Result<> HeldShare::send_whole(const Pull& pull, FrameType type, std::uint64_t applied) {
  const auto& wanted = *static_cast<const WantedRows*>(pull.body.get());
  const std::size_t size_bytes = tables_.rows_size_bytes(wanted.batch);
  const bool fits = size_bytes > 0 && size_bytes <= wanted.shared.answer.size_bytes;
  const std::span<std::byte> place =
      fits ? events_.place_of(pull.worker, wanted.shared) : std::span<std::byte>{};
  if (place.empty()) {
    MUSTER_TRY(auto frame, tables_.read(wanted.batch, applied));
    send_rows(pull, type, pull.step, std::move(frame));
    return {};
  }
  BatchWriter out(pull.worker, applied, place.first(size_bytes));
  MUSTER_TRY_VOID(tables_.write_rows(wanted.batch, out));
  const SharedMessage written{.memory = wanted.shared.memory,
                              .batch = {.offset = wanted.shared.answer.offset, .size_bytes = size_bytes}};
  events_.send(
      pull.worker,
      make_frame(options_.job_id, shared(type),
                 {.flags = pull.serial, .epoch = pull.generation, .sequence = pull.step}, encode(written)));
  return {};
}

void HeldShare::send_rows(const Pull& pull, FrameType type, std::uint64_t sequence,
                          std::vector<std::byte> frame) {
  events_.send(pull.worker, finish_batch(std::move(frame), {.type = static_cast<std::uint16_t>(type),
                                                            .flags = pull.serial,
                                                            .epoch = pull.generation,
                                                            .job_id = options_.job_id,
                                                            .sequence = sequence}));
}

Result<> HeldShare::act(const Send& message) {
  if (const auto* taken = std::get_if<Taken>(&message.message))
    send(message.worker, FrameType::taken, taken->generation, encode(*taken));
  else if (const auto* refusal = std::get_if<Refusal>(&message.message))
    send(message.worker, FrameType::refusal, refusal->generation, encode(*refusal));
  return {};
}

void HeldShare::fail_with(const Error& error) {
  if (failure_) return;
  failure_ = error;
  events_.failed(error);
}

}  // namespace muster::server
