#include "muster/base/stacks.h"

#include <execinfo.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <vector>

#include "muster/base/printable.h"
#include "muster/base/process.h"
#include "muster/base/symbols.h"

namespace muster {
namespace {

using State = StackProbe::State;
using std::chrono::milliseconds;

// By default it does nothing, so that one that comes too late, or to a program that was started meanwhile,
// does no harm.
constexpr int probe_signal = SIGURG;
constexpr milliseconds limit_of_language{1000};
constexpr milliseconds limit_of_signal{1000};
constexpr milliseconds limit_of_handler{1000};  // that has begun
constexpr milliseconds look_interval{1};

std::uintptr_t place_of(const void* context) {
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return static_cast<std::uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.pc);
#else
  static_cast<void>(context);
  return 0;
#endif
}

void pass_on(const struct sigaction& action, int number, siginfo_t* information, void* context) {
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    if (action.sa_sigaction != nullptr) action.sa_sigaction(number, information, context);
  } else if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) {
    action.sa_handler(number);
  }
}

// On the main thread, whatever that does: no lock, no memory.
void look_at_main_thread(int number, siginfo_t* information, void* context) {
  const int kept_errno = errno;
  StackProbe& probe = process().stack_probe;
  // Others of this process may send the same signal to threads of theirs, as the runtime of Go does.
  const bool may_be_ours = information->si_code == SI_TKILL && information->si_pid == ::getpid() &&
                           ::syscall(SYS_gettid) == ::getpid();
  State expected = State::armed;
  if (may_be_ours && probe.state.compare_exchange_strong(expected, State::taking)) {
    probe.interrupted_at = place_of(context);
    probe.frame_count = ::backtrace(probe.frames.data(), static_cast<int>(probe.frames.size()));
    if (probe.language_descriptor >= 0) probe.language.load()->write_main_thread(probe.language_descriptor);
    probe.state = State::done;
  } else {
    pass_on(probe.replaced_action, number, information, context);
  }
  errno = kept_errno;
}

bool becomes_done(StackProbe& probe, Duration limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (probe.state != State::done) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(look_interval);
  }
  return true;
}

// The handler is there for this moment only: a script may have one of its own before and after.
bool interrupt_main_thread(StackProbe& probe) {
  struct sigaction action = {};
  action.sa_sigaction = look_at_main_thread;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  ::sigfillset(&action.sa_mask);
  probe.state = State::armed;
  if (::sigaction(probe_signal, nullptr, &probe.replaced_action) != 0 ||
      ::sigaction(probe_signal, &action, nullptr) != 0)
    return false;
  bool is_done = ::syscall(SYS_tgkill, ::getpid(), ::getpid(), probe_signal) == 0 &&
                 becomes_done(probe, limit_of_signal);
  State expected = State::armed;
  if (!is_done && !probe.state.compare_exchange_strong(expected, State::idle))
    is_done = becomes_done(probe, limit_of_handler);  // it has just begun
  struct sigaction current = {};
  if (::sigaction(probe_signal, nullptr, &current) == 0 && current.sa_sigaction == look_at_main_thread)
    ::sigaction(probe_signal, &probe.replaced_action, nullptr);
  return is_done;
}

// "_core" of ".../_core.cpython-311-x86_64-linux-gnu.so".
std::string file_name(const std::string& path) {
  const std::string name = path.substr(path.find_last_of('/') + 1);
  return name.substr(0, name.find(".cpython-"));
}

// Without the types of its arguments, which are long and say little.
std::string short_function(std::string name) {
  constexpr std::string_view unnamed = "(anonymous namespace)::";
  for (auto at = name.find(unnamed); at != std::string::npos; at = name.find(unnamed))
    name.erase(at, unnamed.size());
  const auto end = name.rfind(')');
  if (end == std::string::npos) return name;
  int depth = 0;
  for (std::size_t at = end + 1; at-- > 0;) {
    if (name[at] == ')') ++depth;
    if (name[at] == '(' && --depth == 0) return at == 0 ? name : name.substr(0, at);
  }
  return name;
}

bool is_of_interpreter(const std::string& file) {
  return file.starts_with("libpython") || file.starts_with("python");
}

std::string frame_text(std::size_t number, const CodePlace& place) {
  const std::string file = place.file.empty() ? "?" : file_name(place.file);
  return place.function.empty()
             ? fmt::format("    #{} {}+{:#x}\n", number, file, place.offset)
             : fmt::format("    #{} {} ({})\n", number, short_function(place.function), file);
}

// Frames of the interpreter itself say nothing that its own stack does not.
std::string frames_text(const std::vector<CodePlace>& places) {
  std::string text;
  for (std::size_t i = 0; i < places.size(); ++i) {
    std::size_t end = i;
    while (end < places.size() && is_of_interpreter(file_name(places[end].file))) ++end;
    if (end - i > 2) {
      text += fmt::format("    #{}-{} of the interpreter\n", i, end - 1);
      i = end - 1;
    } else {
      text += frame_text(i, places[i]);
    }
  }
  return text;
}

// Behind the handler's own frames. A return address is that of the next instruction, which may be another
// function's.
std::vector<std::uintptr_t> addresses_of(const StackProbe& probe) {
  std::vector<std::uintptr_t> all;
  std::size_t begin = 0;
  for (int i = 0; i < probe.frame_count; ++i) {
    all.push_back(reinterpret_cast<std::uintptr_t>(probe.frames[static_cast<std::size_t>(i)]));
    if (all.back() == probe.interrupted_at) begin = all.size() - 1;
  }
  std::vector<std::uintptr_t> addresses(all.begin() + static_cast<std::ptrdiff_t>(begin), all.end());
  for (std::uintptr_t& address : addresses)
    if (address != probe.interrupted_at) --address;
  return addresses;
}

std::string read_available(int descriptor) {
  std::string text;
  std::vector<char> piece(stacks_size_bytes_max);
  for (ssize_t size = 0; text.size() < piece.size();
       text.append(piece.data(), static_cast<std::size_t>(size)))
    if ((size = ::read(descriptor, piece.data(), piece.size())) <= 0) break;
  return text;
}

// What is known of one process before its text is made.
struct Taken {
  std::optional<std::string> language = {};         // all threads
  std::string language_of_main_thread = {};         // where that could not be had
  std::optional<std::vector<CodePlace>> code = {};  // nothing: the main thread does not answer
};

void take_code(StackProbe& probe, Taken& taken) {
  std::array<int, 2> ends = {-1, -1};
  const LanguageStacks* const language = probe.language;
  const bool wants_language =
      language != nullptr && !taken.language && language->write_main_thread != nullptr;
  if (wants_language && ::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0)
    probe.language_descriptor = ends[1];
  const bool is_done = interrupt_main_thread(probe);
  if (is_done) {
    taken.code = find_code(addresses_of(probe));
    if (ends[0] >= 0) taken.language_of_main_thread = read_available(ends[0]);
  }
  if (probe.state == State::taking) return;  // the handler has the rest for ever
  probe.language_descriptor = -1;
  for (const int end : ends)
    if (end >= 0) ::close(end);
  probe.state = State::idle;
}

std::string text_of(const Taken& taken, const LanguageStacks* language) {
  std::string text;
  if (taken.language) text += *taken.language;
  if (language != nullptr && !taken.language) {
    text += fmt::format(
        "  {}: it runs native code and has not let go of the interpreter lock for {} ms{}\n", language->name,
        limit_of_language.count(),
        taken.language_of_main_thread.empty() ? "" : ". The main thread, as a signal handler saw it:");
    text += printable(taken.language_of_main_thread, LineBreaks::kept);
  }
  text += "  C++, main thread (most recent call first):\n";
  text += taken.code
              ? frames_text(*taken.code)
              : fmt::format(
                    "    unknown: it has not answered a signal for {} ms; it may block signals, or wait "
                    "in the kernel for a disk\n",
                    limit_of_signal.count());
  return text;
}

// Before a handler may need it: the first call loads a library.
void load_unwinder() {
  std::array<void*, 1> frame = {};
  ::backtrace(frame.data(), 1);
}

}  // namespace

void set_language_stacks(const LanguageStacks* language) { process().stack_probe.language = language; }

std::string take_stacks() {
  StackProbe& probe = process().stack_probe;
  const std::lock_guard lock(probe.mutex);
  if (probe.state == State::taking)
    return "  unknown: the main thread still has not answered the last time that its stack was asked for\n";
  load_unwinder();
  const LanguageStacks* const language = probe.language;
  Taken taken;
  if (language != nullptr) taken.language = language->ask(limit_of_language);
  take_code(probe, taken);
  std::string text = text_of(taken, language);
  if (text.size() <= stacks_size_bytes_max) return text;
  const auto last_line = text.rfind('\n', stacks_size_bytes_max - 64);
  return text.substr(0, last_line) + "\n    ... (longer)\n";
}

}  // namespace muster
