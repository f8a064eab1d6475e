#include "muster/launch/preload/preloader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <utility>

#include "muster/base/base.h"
#include "muster/launch/preload/preloader_source.h"
#include "muster/launch/preload/python_command.h"
#include "muster/launch/secret_file.h"

namespace muster::launch {
namespace {

constexpr Duration answer_timeout = std::chrono::seconds(60);  // for a fork, on a busy machine
constexpr std::size_t text_max = 4096;

std::string_view name_of(PythonCommand::Kind kind) {
  if (kind == PythonCommand::Kind::script) return "script";
  return kind == PythonCommand::Kind::module ? "module" : "code";
}

// The words and variables of a process, as preloader.py reads them.
std::string text_of(const ProcessSpec& spec, const PythonCommand& command) {
  std::string text = fmt::format("{}{}{}", command.arguments_at, '\0', spec.arguments.size());
  for (const std::string& word : spec.arguments) text += '\0' + word;
  for (const std::string& variable : merged_environment(spec.environment)) text += '\0' + variable;
  return text;
}

ssize_t send_with_descriptors(int socket, std::string_view text, const std::array<int, 3>& descriptors) {
  iovec part{.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof descriptors)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptors);
  std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof descriptors);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

// ---- Orders -----------------------------------------------------------------------------------------------

void Preloader::order(std::size_t process, const ProcessSpec& spec) {
  waiting_.push_back({.process = process, .spec = spec});
  start_if_needed();
  send_next();
}

void Preloader::start_if_needed() {
  if (pid_ >= 0 || waiting_.empty()) return;
  speaks_for_ = waiting_.front().process;
  if (const auto started = start(waiting_.front().spec); !started) fail_all(started.error());
}

Result<> Preloader::start(const ProcessSpec& spec) {
  MUSTER_TRY(const PythonCommand command, parse_python_command(spec.arguments));
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return fail_errno("cannot make a pair of sockets", errno);
  net::Descriptor own(ends[0]);
  const net::Descriptor its(ends[1]);
  ::fcntl(own.get(), F_SETFL, O_NONBLOCK);
  ProcessSpec program{.arguments = command.interpreter, .environment = spec.preload->environment};
  for (std::string word : {std::string("-c"), std::string(preloader_source), std::to_string(its.get()),
                           std::string(name_of(command.kind)), command.target,
                           fmt::format("{}", fmt::join(spec.preload->modules, ","))})
    program.arguments.push_back(std::move(word));
  program.arguments.insert(program.arguments.end(),
                           spec.arguments.begin() + static_cast<std::ptrdiff_t>(command.arguments_at),
                           spec.arguments.end());
  MUSTER_TRY(ChildProcess child, start_process(program, -1, its.get()));
  pid_ = child.pid;
  outputs_ = {std::move(child.out), std::move(child.error)};
  socket_ = std::move(own);
  is_ready_ = false;
  failure_.clear();
  return {};
}

void Preloader::send_next() {
  while (is_ready_ && socket_ && !asked_ && !waiting_.empty()) {
    asked_ = std::move(waiting_.front());
    waiting_.pop_front();
    if (const auto sent = send(*asked_); !sent) {
      fail_one(*std::exchange(asked_, std::nullopt), sent.error());
      continue;
    }
    answer_due_ = clock_.now() + answer_timeout;
  }
}

Result<> Preloader::send(Order& order) {
  MUSTER_TRY(const PythonCommand command, parse_python_command(order.spec.arguments));
  MUSTER_TRY(const net::Descriptor words, memory_file(text_of(order.spec, command)));
  MUSTER_TRY(Pipe out, make_pipe());
  MUSTER_TRY(Pipe error, make_pipe());
  for (const net::Descriptor* end : {&out.read, &error.read}) ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
  order.child = {.pid = -1, .out = std::move(out.read), .error = std::move(error.read)};
  const ssize_t sent =
      send_with_descriptors(socket_.get(), "fork", {words.get(), out.write.get(), error.write.get()});
  // Where it has died, take_child_end tells that soon and gives the order to another.
  if (sent < 0 && errno != EPIPE && errno != ECONNRESET)
    return fail_errno("cannot order a process from the one that has imported modules", errno);
  return {};
}

bool Preloader::cancel(std::size_t process, int signal_number) {
  const auto is_it = [process](const Order& order) { return order.process == process; };
  if (asked_ && is_it(*asked_)) {
    asked_->end_by = signal_number;
    return true;
  }
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), is_it);
  if (found == waiting_.end()) return cancelled_.contains(process);
  waiting_.erase(found);
  cancelled_.emplace(process, signal_number);  // take() tells: no listener is called from here
  return true;
}

// ---- What it does -----------------------------------------------------------------------------------------

void Preloader::add_polled(std::vector<pollfd>& polled, bool takes_output) const {
  polled.push_back({.fd = socket_.get(), .events = POLLIN, .revents = 0});
  for (const net::Descriptor& output : outputs_)
    polled.push_back({.fd = takes_output ? output.get() : -1, .events = POLLIN, .revents = 0});
}

void Preloader::take(std::span<const pollfd> polled) {
  for (const Stream stream : both_streams)
    if (polled[1 + static_cast<std::size_t>(stream)].revents != 0) take_output(stream);
  if (polled[0].revents != 0) take_messages();
  for (const auto& [process, number] : std::exchange(cancelled_, {})) listener_.on_cancelled(process, number);
  if (!asked_) answer_due_.reset();
  end_stuck();
  send_next();
}

void Preloader::take_output(Stream stream) {
  read_some(outputs_[static_cast<std::size_t>(stream)],
            [&](std::string_view bytes) { listener_.on_import_output(speaks_for_, stream, bytes); });
}

void Preloader::take_messages() {
  std::array<char, text_max> bytes;
  while (socket_) {
    const ssize_t size = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size <= 0)
      socket_.reset();  // it ends: its parent hears of that
    else
      take_message({bytes.data(), static_cast<std::size_t>(size)});
  }
}

void Preloader::take_message(std::string_view text) {
  const auto space = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, space);
  const std::string rest = printable(text.substr(std::min(space + 1, text.size())), LineBreaks::kept);
  if (word == "ready") {
    is_ready_ = true;
  } else if (word == "note") {
    listener_.on_preloader_note(rest);
  } else if (word == "failed" && asked_) {
    fail_one(*std::exchange(asked_, std::nullopt), Error{Code::io, rest});
  } else if (word == "failed") {
    failure_ = rest;
  } else if (word == "started" && asked_) {
    Order order = *std::exchange(asked_, std::nullopt);
    std::from_chars(rest.data(), rest.data() + rest.size(), order.child.pid);
    if (order.end_by != 0) ::kill(-order.child.pid, order.end_by);
    listener_.on_forked(order.process, std::move(order.child));
  }
}

// ---- Its death --------------------------------------------------------------------------------------------

// It was stopped, or hangs: a process that waits for it would for ever.
void Preloader::end_stuck() {
  if (!asked_ || !answer_due_ || clock_.now() < *answer_due_) return;
  listener_.on_preloader_note(
      fmt::format("the process that has imported modules (pid {}) does not answer for "
                  "{} s and is killed",
                  pid_, answer_timeout / std::chrono::seconds(1)));
  answer_due_.reset();
  ::kill(pid_, SIGKILL);
}

bool Preloader::take_child_end(pid_t pid, int wait_status) {
  if (pid_ < 0 || pid != pid_) return false;
  take_messages();
  for (const Stream stream : both_streams)
    for (int reads = 0; outputs_[static_cast<std::size_t>(stream)] && reads < 4; ++reads) take_output(stream);
  lost(wait_status);
  return true;
}

void Preloader::lost(int wait_status) {
  const pid_t pid = std::exchange(pid_, -1);
  const bool was_ready = std::exchange(is_ready_, false);
  socket_.reset();
  outputs_ = {};
  answer_due_.reset();
  if (!was_ready && waiting_.empty()) return;  // no process waits any more
  if (!was_ready) {
    const Preload& wanted = *waiting_.front().spec.preload;
    const std::string end = fmt::format("the process that imports {} {}", fmt::join(wanted.modules, ","),
                                        describe_exit(wait_status));
    return fail_all(
        {Code::not_found, fmt::format("{}: {}", wanted.origin, failure_.empty() ? end : failure_)});
  }
  listener_.on_preloader_note(
      fmt::format("the process that had imported modules (pid {}) {}: {}", pid, describe_exit(wait_status),
                  "the next process to be started waits until another has imported them"));
  if (asked_) {
    Order order = *std::exchange(asked_, std::nullopt);
    const std::string end = describe_exit(wait_status);
    if (std::exchange(order.was_lost_before, true))
      fail_one(std::move(order), {Code::io, fmt::format("the process that was to fork it {} twice", end)});
    else if (order.end_by != 0)
      listener_.on_cancelled(order.process, order.end_by);
    else
      waiting_.push_front(std::move(order));
  }
  start_if_needed();
}

void Preloader::fail_all(const Error& error) {
  for (const Order& order : std::exchange(waiting_, {})) listener_.on_not_forked(order.process, error);
}

}  // namespace muster::launch
