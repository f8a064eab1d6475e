#include "muster/launch/call_times.h"

#include <errno.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "muster/collective/collective.h"
#include "muster/net/net.h"

namespace muster::launch {
namespace {

using namespace std::chrono_literals;
using collective::Listener;

constexpr Duration ranks_limit = 20s;
constexpr std::size_t text_bytes_max = 64 << 10;

// What the ranks' processes share: where each is reached, and in the end what rank 0 has measured.
struct Board {
  struct Notice {
    std::uint16_t port;
    char local_name[108];
  };
  std::atomic<std::uint32_t> written;
  Notice notices[measured_workers_max];
  std::size_t text_bytes;
  char text[text_bytes_max];
};

struct Unmap {
  void operator()(Board* board) const { ::munmap(board, sizeof(Board)); }
};
using BoardPtr = std::unique_ptr<Board, Unmap>;

BoardPtr make_board() {
  void* memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  return BoardPtr(new (memory) Board{});
}

Result<std::unique_ptr<Communicator>> join(Board& board, std::uint32_t rank, std::uint32_t ranks) {
  MUSTER_TRY(Listener listener, Listener::open("127.0.0.1"));
  Board::Notice& notice = board.notices[rank];
  notice.port = listener.port();
  if (listener.local_name().size() >= sizeof notice.local_name)
    return fail(Code::io, "the name of a local socket is too long");
  std::memcpy(notice.local_name, listener.local_name().c_str(), listener.local_name().size() + 1);
  board.written.fetch_add(1);
  const TimePoint give_up = real_clock().now() + ranks_limit;
  while (board.written.load() < ranks) {
    if (real_clock().now() > give_up) return fail(Code::timeout, "not all ranks have started");
    ::usleep(1000);
  }
  collective::Group group{.epoch = 1, .job_id = 1, .rank = rank, .endpoints = {}};
  for (std::uint32_t r = 0; r < ranks; ++r)
    group.endpoints.push_back({.host_key = "here",
                               .address = "127.0.0.1",
                               .port = board.notices[r].port,
                               .local_name = board.notices[r].local_name});
  return collective::connect(std::move(group), std::move(listener),
                             {.connect_timeout = ranks_limit, .call_timeout = ranks_limit});
}

// In a process of its own.
Result<> measure_as(Board& board, std::uint32_t rank, std::uint32_t ranks) {
  MUSTER_TRY(const std::unique_ptr<Communicator> group, join(board, rank, ranks));
  MUSTER_TRY(const CallTimes times, measure_calls(*group));
  if (rank != 0) return {};
  const std::string text = to_text(times);
  if (text.size() > text_bytes_max) return fail(Code::io, "the table of call times is too long");
  std::memcpy(board.text, text.data(), text.size());
  board.text_bytes = text.size();
  return {};
}

bool ended_well(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return false;
  return status == 0;
}

Result<CallTimes> measure_here(std::uint32_t workers) {
  const BoardPtr board = make_board();
  if (board == nullptr) return fail(Code::io, "there is no memory to share");
  std::vector<pid_t> children;
  for (std::uint32_t rank = 0; rank < workers; ++rank) {
    const pid_t child = ::fork();
    if (child < 0) break;  // the others wait for it until their deadline
    if (child == 0) ::_exit(measure_as(*board, rank, workers) ? 0 : 1);
    children.push_back(child);
  }
  bool sound = children.size() == workers;
  for (const pid_t child : children) sound = ended_well(child) && sound;
  if (!sound || board->text_bytes == 0)
    return fail(Code::io, fmt::format("{} processes of this machine could not be measured", workers));
  return call_times_from({board->text, board->text_bytes});
}

Result<CallTimes> read_table(const std::string& path) {
  MUSTER_TRY(const std::vector<std::byte> bytes, real_files().read(path));
  return call_times_from({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace

Result<std::string> prepare_call_times(const Environment& environment, std::uint32_t workers, bool anew) {
  if (workers > measured_workers_max)
    return fail(Code::invalid_argument,
                fmt::format("calls between more than {} workers of one machine are not measured",
                            measured_workers_max));
  MUSTER_TRY(const std::string path, call_times_file(environment, net::host_name(), workers));
  if (const auto known = read_table(path); !anew && known && known->workers == workers) return path;
  MUSTER_TRY(const CallTimes times, measure_here(workers));
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  const std::string text = to_text(times);
  MUSTER_TRY_VOID(real_files().write(path, std::as_bytes(std::span(text))));
  return path;
}

}  // namespace muster::launch
