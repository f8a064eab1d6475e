#include "muster/data/iterator.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "muster/data/iterator_state.h"

namespace muster::data {
namespace {

// A wake-up takes the waker 50 us on a virtual machine (measured), and what another core wrote is fetched
// slowly: an item that is made faster is better made where it is used.
constexpr Duration worth_a_thread = std::chrono::microseconds(100);
// The cheapest of so many items decides: the first ones also warm caches and build tables.
constexpr int items_measured = 3;

constexpr auto waiting_step = std::chrono::milliseconds(100);

// Items made ahead hold no more than this together, as soon as there are two.
constexpr std::size_t ahead_bytes_max = 128 << 20;

std::size_t size_bytes(const Item& item) {
  std::size_t sum = 0;
  for (const Tensor& value : item) sum += value.size_bytes();
  return sum;
}

bool ends_pass(const Result<std::optional<Item>>& item) { return !item || !*item; }

}  // namespace

void ItemTimes::add(Duration time) {
  const std::lock_guard lock(mutex_);
  if (kept_.size() < kept_max) kept_.push_back(time);
}

std::optional<Duration> ItemTimes::middle() const {
  const std::lock_guard lock(mutex_);
  if (kept_.size() < 2) return std::nullopt;
  std::vector<Duration> times = kept_;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

Iterator::State::State(NodePtr node, IterateOptions options)
    : process_(::getpid()),
      node_(std::move(node)),
      while_waiting_(std::move(options.while_waiting)),
      clock_(options.clock),
      times_(std::move(options.times)),
      workers_(options.workers > 0 ? options.workers : workers_default()),
      stream_(node_->open({.seed = options.seed,
                           .epoch = options.epoch,
                           .rows_before = options.rows_before,
                           .padding = options.padding,
                           .workers = &workers_,
                           .prefetch_items = options.prefetch_items,
                           .worker_warning = options.worker_warning,
                           .worker_deadline = options.worker_deadline,
                           .ended = &stop_})),
      to_skip_(options.skip_items),
      ahead_max_(options.prefetch_items) {
  if (node_->foreign()) thread_ = std::thread([this] { make_ahead(); });
}

Iterator::State::~State() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  taken_.notify_one();
  thread_.join();
}

std::size_t Iterator::State::ready() {
  const std::lock_guard lock(mutex_);
  return ready_.size();
}

bool Iterator::State::in_own_process() const { return ::getpid() == process_; }

Result<std::optional<Item>> Iterator::State::next() {
  if (!in_own_process())
    return fail(Code::refused,
                "this iterator belongs to the process that forked this one; begin a pass of its own here");
  if (last_) return *last_;
  auto item = has_thread() ? take() : make_measured();
  if (ends_pass(item)) last_ = item;
  return item;
}

Result<std::optional<Item>> Iterator::State::make() {
  if (times_ == nullptr) return make_next();
  const Duration begin = thread_processor_time();
  auto item = make_next();
  if (!ends_pass(item)) times_->add(thread_processor_time() - begin);
  return item;
}

Result<std::optional<Item>> Iterator::State::make_next() {
  if (const std::size_t skipped = std::exchange(to_skip_, 0); skipped > 0)
    MUSTER_TRY_VOID(stream_->skip(skipped));
  MUSTER_TRY(auto block, stream_->next(1));
  if (!block) return std::nullopt;
  for (Tensor& column : block->columns) column = column.reshaped(without_leading(column.shape()));
  return std::move(block->columns);
}

Result<std::optional<Item>> Iterator::State::make_measured() {
  if (measured_ == items_measured) return make();
  const TimePoint begin = clock_.now();
  auto item = make();
  cheapest_ = std::min(cheapest_, clock_.now() - begin);
  if (++measured_ == items_measured && cheapest_ > worth_a_thread && !ends_pass(item))
    thread_ = std::thread([this] { make_ahead(); });
  return item;
}

Result<std::optional<Item>> Iterator::State::take() {
  std::unique_lock lock(mutex_);
  while (!made_.wait_for(lock, waiting_step, [this] { return !ready_.empty(); })) {
    if (!while_waiting_) continue;  // only the operations know how long they may take
    lock.unlock();
    MUSTER_TRY_VOID(while_waiting_());
    lock.lock();
  }
  auto item = std::move(ready_.front());
  ready_.pop_front();
  const bool wake = ready_.size() == ahead_max_ / 2;
  lock.unlock();
  if (wake) taken_.notify_one();
  return item;
}

// Processes that the stream has forked die with this thread: it lets them go in peace first.
void Iterator::State::make_ahead() {
  fill_queue();
  stream_.reset();
}

// Fills the queue, then sleeps until half of it is taken: a wake-up makes several items.
void Iterator::State::fill_queue() {
  bool ended = false;
  while (!ended) {
    auto item = make();
    ended = ends_pass(item);
    const std::size_t bytes = ended ? 0 : size_bytes(**item);
    std::unique_lock lock(mutex_);
    if (bytes > 0) ahead_max_ = std::min(ahead_max_, std::max<std::size_t>(ahead_bytes_max / bytes, 2));
    ready_.push_back(std::move(item));
    made_.notify_one();
    if (ready_.size() >= ahead_max_)
      taken_.wait(lock, [this] { return stop_ || ready_.size() <= ahead_max_ / 2; });
    if (stop_) return;
  }
}

Iterator::Iterator(std::unique_ptr<State> state) : state_(std::move(state)) {}
Iterator::Iterator(Iterator&&) noexcept = default;
Iterator& Iterator::operator=(Iterator&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}
Iterator::~Iterator() {
  // A forked child has no thread to join, and the lock may have been held at the fork, for ever: what is
  // left goes with the process.
  if (state_ && !state_->in_own_process()) (void)state_.release();
}

Result<std::optional<Item>> Iterator::next() { return state_->next(); }

}  // namespace muster::data
