#include "muster/data/worker_processes.h"

#include <fmt/format.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "muster/net/net.h"

namespace muster::data {
namespace {

using namespace std::chrono_literals;

// Only addresses: memory is taken when it is written.
constexpr std::size_t slot_bytes_otherwise = std::size_t{1} << 30;
constexpr std::size_t page_bytes = 4096;
constexpr std::size_t slot_bytes_min = 16 * page_bytes;  // errors fit
constexpr std::size_t depth_max = 64;
constexpr std::size_t held_bytes_max = 128 << 20;  // that all workers hold
constexpr auto worker_waiting_step = 100ms;
constexpr auto leave_limit = 1s;
// Rows that take less are waited for by several at a time: a wake-up takes the waker 50 us.
constexpr std::int64_t cheap_row_ns = 500'000;
constexpr std::size_t message_bytes_max = slot_bytes_min / 4;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string seconds_text(Duration duration) {
  return fmt::format("{:.4g} s", std::chrono::duration<double>(duration).count());
}

const WorkerHost& host_of(const ProcessOptions& options) {
  static const WorkerHost plain;
  return options.host ? *options.host : plain;
}

// ---- Values in a slot -------------------------------------------------------------------------------------

std::size_t padded(std::size_t bytes) {
  constexpr std::size_t unit = Buffer::alignment_bytes;
  return (bytes + unit - 1) / unit * unit;
}

std::size_t bytes_of(std::span<const Tensor> values) {
  std::size_t words = 1, bytes = 0;
  for (const Tensor& value : values) {
    words += 2 + value.shape().rank();
    bytes += padded(value.size_bytes());
  }
  return padded(words * sizeof(std::int64_t)) + bytes;
}

// How many there are; dtype, rank and sizes of each; then their elements. There is room for bytes_of().
void write_values(std::span<const Tensor> values, std::byte* at) {
  std::vector<std::int64_t> words = {static_cast<std::int64_t>(values.size())};
  for (const Tensor& value : values) {
    words.push_back(static_cast<std::int64_t>(value.dtype()));
    words.push_back(static_cast<std::int64_t>(value.shape().rank()));
    words.insert(words.end(), value.shape().begin(), value.shape().end());
  }
  std::memcpy(at, words.data(), words.size() * sizeof(std::int64_t));
  at += padded(words.size() * sizeof(std::int64_t));
  for (const Tensor& value : values) {
    if (value.size_bytes() > 0) std::memcpy(at, value.bytes(), value.size_bytes());
    at += padded(value.size_bytes());
  }
}

// Views of the slot.
std::vector<Tensor> read_values(std::byte* at) {
  const auto* word = reinterpret_cast<const std::int64_t*>(at);
  std::vector<std::pair<DType, Shape>> types(static_cast<std::size_t>(*word++));
  for (auto& [dtype, shape] : types) {
    dtype = static_cast<DType>(*word++);
    const std::int64_t rank = *word++;
    shape = Shape(std::vector<std::int64_t>(word, word + rank));
    word += rank;
  }
  at += padded(static_cast<std::size_t>(reinterpret_cast<const std::byte*>(word) - at));
  std::vector<Tensor> values;
  for (auto& [dtype, shape] : types) {
    const std::size_t bytes = static_cast<std::size_t>(shape.elements()) * size_bytes(dtype);
    values.emplace_back(dtype, std::move(shape), Buffer::borrow(at, bytes, nullptr));
    at += padded(bytes);
  }
  return values;
}

// The worker's own: user code may keep them.
std::vector<Tensor> copied(const std::vector<Tensor>& values) {
  std::vector<Tensor> copies;
  for (const Tensor& value : values) {
    Tensor& copy = copies.emplace_back(value.dtype(), value.shape());
    if (value.size_bytes() > 0) std::memcpy(copy.bytes(), value.bytes(), value.size_bytes());
  }
  return copies;
}

}  // namespace

pid_t WorkerHost::fork() const { return ::fork(); }

Error WorkerHost::unpack(Error error, std::string_view, const std::string& where) const {
  error.message = fmt::format("{}: {}", where, error.message);
  return error;
}

// ---- Memory that the processes share ----------------------------------------------------------------------

// What both sides know of a worker. Counters may pass 2^32.
struct WorkerProcesses::Control {
  alignas(64) std::atomic<std::uint32_t> bell = 0;  // counts up with each task, and at the end
  std::atomic<std::uint32_t> given = 0;             // tasks
  std::atomic<std::uint32_t> stop = 0;
  std::atomic<std::uint32_t> wanted = 0;  // the parent sleeps until so many are done
  alignas(64) std::atomic<std::uint32_t> done = 0;
  std::atomic<std::uint32_t> sleeps = 0;          // the worker waits for the bell
  std::atomic<std::uint32_t> left = 0;            // it is about to exit
  std::atomic<std::int64_t> row = 0;              // that it is at,
  std::atomic<std::int64_t> since = 0;            // since then; 0: at none
  std::atomic<std::int64_t> took = cheap_row_ns;  // for the last one
};

struct WorkerProcesses::SlotHead {
  enum class Kind : std::uint64_t { values, error, too_large };
  Kind kind = Kind::values;
  std::int64_t row = 0;
  std::uint64_t key = 0;
  std::uint64_t seed = 0;
  std::uint64_t bytes = 0;   // of the values, or of the message
  std::uint64_t packed = 0;  // bytes behind the message
  std::uint64_t code = 0;    // of the error
  std::uint64_t reserved = 0;
};

struct WorkerProcesses::Worker {
  std::size_t index = 0;
  pid_t process = -1;
  Control* control = nullptr;
  std::int64_t seen_since = 0;     // Control::since, when it was looked at
  Duration stuck = {};             // how long it has been the same
  Duration warned = {};            // for how long at the last warning
  std::optional<Error> lost = {};  // it is gone
};

class WorkerProcesses::Region {
 public:
  static Result<std::unique_ptr<Region>> map(std::size_t bytes) {
    void* data =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED)
      return fail(Code::io,
                  fmt::format("data workers: no {} MiB of address space for their rows ({}): give a smaller "
                              "max_rowsize (in MB), fewer workers or a smaller prefetch size",
                              bytes >> 20, std::strerror(errno)));
    return std::make_unique<Region>(static_cast<std::byte*>(data), bytes);
  }
  Region(std::byte* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region() { ::munmap(data_, bytes_); }

  std::byte* data() const { return data_; }
  // What this process forks from now on does not get it, and so cannot keep it alive.
  void keep_from_children() const { ::madvise(data_, bytes_, MADV_DONTFORK); }
  static void give_back(std::byte* data, std::size_t bytes) { ::madvise(data, bytes, MADV_REMOVE); }

 private:
  std::byte* const data_;
  const std::size_t bytes_;
};

namespace {

std::string packed_by(const WorkerHost& host, const Error& error) {
  try {
    return host.pack(error);
  } catch (...) {  // the message has to do
    return {};
  }
}

std::size_t slot_bytes_for(const ProcessOptions& options) {
  const std::size_t bytes = options.row_bytes_max > 0 ? options.row_bytes_max : slot_bytes_otherwise;
  // Beside the values: the head, and what describes them.
  return (std::max(bytes, slot_bytes_min) + page_bytes - 1) / page_bytes * page_bytes + page_bytes;
}

}  // namespace

// ---- In the process that wants the rows -------------------------------------------------------------------

WorkerProcesses::WorkerProcesses(const ProcessOptions& options, const WorkerJob& job, const Pass& pass)
    : options_(options),
      job_(job),
      host_(host_of(options)),
      ended_(pass.ended),
      warning_(pass.worker_warning),
      deadline_(pass.worker_deadline),
      count_(static_cast<std::size_t>(options.count)),
      depth_(std::min(2 * pass.prefetch_items, depth_max)),
      slot_bytes_(slot_bytes_for(options)),
      parent_(::getpid()) {}

WorkerProcesses::~WorkerProcesses() { end(); }

std::byte* WorkerProcesses::slot_of(std::uint64_t task) const {
  const std::size_t slot = worker_of(task) * depth_ + task / count_ % depth_;
  return region_->data() + padded(count_ * sizeof(Control)) / page_bytes * page_bytes + page_bytes +
         slot * slot_bytes_;
}

bool WorkerProcesses::has_room() const {
  const std::size_t ahead = in_flight();
  return ahead < count_ * depth_ && (ahead < count_ || (ahead + 1) * largest_ <= held_bytes_max);
}

Result<> WorkerProcesses::start() {
  const std::size_t controls = padded(count_ * sizeof(Control)) / page_bytes * page_bytes + page_bytes;
  MUSTER_TRY(region_, Region::map(controls + count_ * depth_ * slot_bytes_));
  auto* const control = reinterpret_cast<Control*>(region_->data());
  for (std::size_t index = 0; index < count_; ++index)
    workers_.push_back({.index = index, .control = new (control + index) Control});
  for (std::size_t index = 0; index < count_; ++index) MUSTER_TRY_VOID(fork_worker(index));
  region_->keep_from_children();
  return {};
}

Result<> WorkerProcesses::fork_worker(std::size_t index) {
  const pid_t process = host_.fork();
  if (process == 0) serve(index);
  if (process < 0)
    return fail(Code::io, fmt::format("data worker {} of {} cannot be started: {}", index, count_,
                                      std::strerror(errno)));
  workers_[index].process = process;
  return {};
}

Result<> WorkerProcesses::give(const WorkerTask& task) {
  if (workers_.empty()) MUSTER_TRY_VOID(start());
  const std::size_t bytes = bytes_of(task.inputs);
  if (bytes + sizeof(SlotHead) > slot_bytes_)
    return fail(
        Code::invalid_argument,
        fmt::format("row {} {} takes {} bytes on its way to a data worker, and max_rowsize allows {} MB",
                    task.row, job_.what, bytes, slot_bytes_ >> 20));
  std::byte* const slot = slot_of(given_);
  new (slot) SlotHead{.row = task.row, .key = task.key, .seed = task.seed, .bytes = bytes};
  write_values(task.inputs, slot + sizeof(SlotHead));
  largest_ = std::max(largest_, bytes);
  Control& control = *workers_[worker_of(given_)].control;
  ++given_;
  control.given.fetch_add(1);
  control.bell.fetch_add(1);
  if (control.sleeps.load() != 0) net::futex_wake_all(control.bell);
  return {};
}

Result<std::vector<Tensor>> WorkerProcesses::front() {
  MUSTER_CHECK(in_flight() > 0, "no task was given to a data worker");
  Worker& worker = workers_[worker_of(taken_)];
  MUSTER_TRY_VOID(await(worker, static_cast<std::uint32_t>(taken_ / count_ + 1)));
  std::byte* const slot = slot_of(taken_);
  if (reinterpret_cast<const SlotHead*>(slot)->kind != SlotHead::Kind::values)
    return fail(error_in(slot, worker));
  return read_values(slot + sizeof(SlotHead));
}

void WorkerProcesses::pop() {
  std::byte* const slot = slot_of(taken_);
  const std::size_t bytes = reinterpret_cast<const SlotHead*>(slot)->bytes;
  largest_ = std::max(largest_, bytes);
  // All slots together would hold too much.
  if (bytes * count_ * depth_ > held_bytes_max) Region::give_back(slot, slot_bytes_);
  ++taken_;
}

// Until `needed` tasks of the worker are done. Cheap rows are better waited for in bulk: the worker is to
// wake this thread when half of what it has is done.
Result<> WorkerProcesses::await(Worker& worker, std::uint32_t needed) {
  Control& control = *worker.control;
  const auto lacks = [needed](std::uint32_t done) { return static_cast<std::int32_t>(done - needed) < 0; };
  while (lacks(control.done.load())) {
    std::uint32_t wanted = needed;
    if (control.took.load() < cheap_row_ns) {
      const std::uint32_t half = control.given.load() - static_cast<std::uint32_t>(depth_ / 2);
      if (static_cast<std::int32_t>(half - needed) > 0) wanted = half;
    }
    control.wanted.store(wanted);
    const std::uint32_t done = control.done.load();
    if (!lacks(done)) return {};
    net::futex_wait(control.done, done, worker_waiting_step);
    if (!lacks(control.done.load())) return {};
    if (ended_ != nullptr && ended_->load()) return fail(Code::aborted, "the pass was ended");
    MUSTER_TRY_VOID(check_alive(worker));
    MUSTER_TRY_VOID(check_time(worker));
  }
  return {};
}

std::string WorkerProcesses::name_of(const Worker& worker) const {
  return fmt::format("data worker {} (process {})", worker.index, worker.process);
}

std::string WorkerProcesses::place_of(const Worker& worker, std::int64_t row) const {
  return fmt::format("{}, row {} {}", name_of(worker), row, job_.what);
}

// After the counters were read once more, a process that is gone has done nothing in between.
Result<> WorkerProcesses::check_alive(Worker& worker) const {
  if (worker.lost) return fail(*worker.lost);
  int status = 0;
  const pid_t ended = ::waitpid(worker.process, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return {};
  worker.lost = Error{Code::internal, end_of(worker, ended > 0 ? std::optional(status) : std::nullopt)};
  return fail(*worker.lost);
}

std::string WorkerProcesses::end_of(const Worker& worker, std::optional<int> status) const {
  const std::string name = name_of(worker);
  const auto* const head = reinterpret_cast<const SlotHead*>(slot_of(taken_));
  const std::string at = fmt::format("at row {} {}", head->row, job_.what);
  if (!status) return fmt::format("{} is gone, {}", name, at);
  if (!WIFSIGNALED(*status))
    return fmt::format("{} ended by itself with exit code {}, {}", name, WEXITSTATUS(*status), at);
  const int number = WTERMSIG(*status);
  return fmt::format("{} was killed by signal {} ({}), {}{}", name, number, ::strsignal(number), at,
                     number == SIGKILL ? ": is memory short?" : "");
}

// Called about every waiting step. Steps are counted, not the clock, which runs on while a whole job is
// stopped.
Result<> WorkerProcesses::check_time(Worker& worker) {
  const std::int64_t since = worker.control->since.load();
  if (since == 0 || std::exchange(worker.seen_since, since) != since) {
    worker.stuck = worker.warned = Duration::zero();
    return {};
  }
  worker.stuck += worker_waiting_step;
  const bool is_late = deadline_ > Duration::zero() && worker.stuck >= deadline_;
  if (!is_late && (warning_ <= Duration::zero() || worker.stuck - worker.warned < warning_)) return {};
  const std::string text =
      fmt::format("{}, has made no progress for {}", place_of(worker, worker.control->row.load()),
                  seconds_text(worker.stuck));
  if (host_.stack_signal() != 0) ::kill(worker.process, host_.stack_signal());
  if (is_late)
    return fail(
        Code::timeout,
        fmt::format("{}: the deadline of a row is {} (muster.dataset.config.set_multiprocessing_deadline)",
                    text, seconds_text(deadline_)));
  worker.warned = worker.stuck;
  log::warning(deadline_ > Duration::zero()
                   ? fmt::format("{}; after {} it is an error", text, seconds_text(deadline_))
                   : text);
  return {};
}

Error WorkerProcesses::error_in(const std::byte* slot, const Worker& worker) const {
  const SlotHead& head = *reinterpret_cast<const SlotHead*>(slot);
  const std::string where = place_of(worker, head.row);
  if (head.kind == SlotHead::Kind::too_large)
    return {Code::invalid_argument, fmt::format("{}: it takes {} bytes, and max_rowsize allows {} MB", where,
                                                head.bytes, slot_bytes_ >> 20)};
  const auto* text = reinterpret_cast<const char*>(slot + sizeof(SlotHead));
  const std::string_view packed(text + head.bytes, head.packed);
  return host_.unpack({static_cast<Code>(head.code), std::string(text, head.bytes)}, packed, where);
}

void WorkerProcesses::end() {
  if (parent_ != ::getpid()) return;  // a copy of the object, in a process that user code has forked
  for (const Worker& worker : workers_) {
    worker.control->stop.store(1);
    worker.control->bell.fetch_add(1);
    net::futex_wake_all(worker.control->bell);
  }
  const std::int64_t limit = now_ns() + std::chrono::nanoseconds(leave_limit).count();
  for (const Worker& worker : workers_) {
    if (worker.process < 0 || worker.lost) continue;
    int status = 0;
    pid_t ended = 0;
    while (ended == 0 && worker.control->left.load() == 0 && now_ns() < limit) {
      net::futex_wait(worker.control->left, 0, 10ms);
      ended = ::waitpid(worker.process, &status, WNOHANG);
    }
    if (ended != 0) continue;
    if (worker.control->left.load() == 0) ::kill(worker.process, SIGKILL);
    while (::waitpid(worker.process, &status, 0) < 0 && errno == EINTR) {
    }
  }
  workers_.clear();
}

// ---- In a worker ------------------------------------------------------------------------------------------

namespace {

// Each row makes and frees its arrays anew. Memory that goes back to the system in between has to be cleared
// and mapped again: a third of the time that decoding a picture of 256 x 256 takes.
void keep_freed_memory() {
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

}  // namespace

// Never returns into what this process was before the fork.
void WorkerProcesses::serve(std::size_t index) const {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent_) ::_exit(0);
  ::prctl(PR_SET_NAME, fmt::format("muster-data-{}", index).c_str());
  ::signal(SIGINT, SIG_IGN);  // Ctrl-C is for the process that trains, which ends this one
  ::signal(SIGTERM, SIG_DFL);
  keep_freed_memory();
  Control& control = *workers_[index].control;
  try {
    host_.begin(static_cast<int>(index));
  } catch (...) {  // what it would prepare is convenience
  }
  for (std::uint64_t task = index; control.stop.load() == 0;) {
    const std::uint32_t bell = control.bell.load();
    if (control.given.load() == control.done.load()) {
      control.sleeps.store(1);
      if (control.bell.load() == bell) net::futex_wait(control.bell, bell, 1s);
      control.sleeps.store(0);
      continue;
    }
    make_row(control, slot_of(task));
    task += count_;
    if (control.done.fetch_add(1) + 1 == control.wanted.load()) net::futex_wake_all(control.done);
  }
  try {
    host_.end();
  } catch (...) {
  }
  control.left.store(1);
  net::futex_wake_all(control.left);
  ::_exit(0);
}

void WorkerProcesses::make_row(Control& control, std::byte* slot) const {
  SlotHead& head = *reinterpret_cast<SlotHead*>(slot);
  const std::int64_t begin = now_ns();
  control.row.store(head.row);
  control.since.store(begin);
  std::byte* const content = slot + sizeof(SlotHead);
  const auto made = [&]() -> Result<std::vector<Tensor>> {
    try {
      host_.seed(head.seed);
      return job_.make({.row = head.row, .key = head.key, .inputs = copied(read_values(content))});
    } catch (const Exception& exception) {
      return fail(exception.error());
    } catch (const std::exception& exception) {
      return fail(Code::internal, exception.what());
    }
  }();
  if (made) {
    head.bytes = bytes_of(*made);
    head.kind =
        head.bytes + sizeof(SlotHead) > slot_bytes_ ? SlotHead::Kind::too_large : SlotHead::Kind::values;
    if (head.kind == SlotHead::Kind::values) write_values(*made, content);
  } else {
    const std::string message = made.error().message.substr(0, message_bytes_max);
    std::string packed = packed_by(host_, made.error());
    if (packed.size() > slot_bytes_ - sizeof(SlotHead) - message.size()) packed.clear();
    head.kind = SlotHead::Kind::error;
    head.code = static_cast<std::uint64_t>(made.error().code);
    head.bytes = message.size();
    head.packed = packed.size();
    std::memcpy(content, message.data(), message.size());
    std::memcpy(content + message.size(), packed.data(), packed.size());
  }
  control.took.store(now_ns() - begin);
  control.since.store(0);
}

}  // namespace muster::data
