// Stacks of Python's threads, for `muster status --stacks`, and those of the whole process.
#include "muster/base/stacks.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <system_error>
#include <thread>

#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/process.h"

namespace muster::python {
namespace {

constexpr std::size_t frames_max = 64;  // of a thread
constexpr std::size_t threads_max = 32;

std::string frames_text(nb::object frame) {
  std::string text;
  for (std::size_t i = 0; !frame.is_none(); ++i, frame = frame.attr("f_back")) {
    if (i == frames_max) return text + "    ...\n";
    const nb::object code = frame.attr("f_code");
    const nb::object line = frame.attr("f_lineno");
    text += fmt::format("    File \"{}\", line {}, in {}\n", nb::str(code.attr("co_filename")).c_str(),
                        nb::str(line).c_str(), nb::str(code.attr("co_name")).c_str());
  }
  return text;
}

// With the interpreter lock. Runs no code of the script, and takes no lock that a script may hold.
std::string stacks_of_threads() {
  const nb::dict frames = nb::cast<nb::dict>(nb::module_::import_("sys").attr("_current_frames")());
  const nb::module_ threading = nb::module_::import_("threading");
  const nb::dict active = nb::cast<nb::dict>(threading.attr("_active"));
  const nb::object main = threading.attr("_main_thread").attr("ident");
  std::string main_text, text;
  std::size_t count = 0;
  for (const auto [ident, frame] : frames) {
    if (main.equal(ident)) {
      main_text = "  Python, main thread (most recent call first):\n" + frames_text(nb::borrow(frame));
      continue;
    }
    if (++count > threads_max) continue;
    const nb::object thread = active.attr("get")(ident);
    const std::string name = thread.is_none() ? "of C++" : nb::str(thread.attr("_name")).c_str();
    text += fmt::format("  Python, thread {}:\n{}", name, frames_text(nb::borrow(frame)));
  }
  if (count > threads_max) text += fmt::format("  Python: {} more threads\n", count - threads_max);
  return main_text + text;
}

struct Answer {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_there = false;
  std::string text = {};
};

// On a thread of its own, which waits for the interpreter lock as long as that takes: an interpreter that
// ends ends such a thread where it waits, so nothing here forbids exceptions.
void answer(const std::shared_ptr<Answer>& answer) {
  if (!nb::is_alive()) return;
  const PyGILState_STATE state = PyGILState_Ensure();
  std::string text;
  try {
    text = stacks_of_threads();
  } catch (const std::exception& error) {
    text = fmt::format("  Python: {}\n", error.what());
  }
  PyGILState_Release(state);
  process().asks_for_stacks = false;
  const std::lock_guard lock(answer->mutex);
  answer->text = std::move(text);
  answer->is_there = true;
  answer->changed.notify_all();
}

std::optional<std::string> ask(Duration limit) {
  if (process().asks_for_stacks.exchange(true)) return std::nullopt;  // the last one still waits for the lock
  const auto made = std::make_shared<Answer>();
  try {
    std::thread([made] { answer(made); }).detach();
  } catch (const std::system_error&) {
    process().asks_for_stacks = false;
    return std::nullopt;
  }
  std::unique_lock lock(made->mutex);
  if (!made->changed.wait_for(lock, limit, [&] { return made->is_there; })) return std::nullopt;
  return made->text;
}

// What faulthandler calls in its signal handlers. It is the interpreter's own, and may be missing in another
// one.
using DumpTraceback = void (*)(int descriptor, PyThreadState* state);

DumpTraceback dump_traceback() {
  static const auto found = reinterpret_cast<DumpTraceback>(::dlsym(RTLD_DEFAULT, "_Py_DumpTraceback"));
  return found;
}

void write_main_thread(int descriptor) {
  PyThreadState* const state = PyGILState_GetThisThreadState();
  if (state != nullptr) dump_traceback()(descriptor, state);
}

}  // namespace

void bind_stacks(nb::module_& core) {
  static const LanguageStacks python{
      .name = "Python", .ask = ask, .write_main_thread = dump_traceback() ? write_main_thread : nullptr};
  set_language_stacks(&python);
  core.def(
      "_take_stacks", [] { return take_stacks(); }, nb::call_guard<nb::gil_scoped_release>(),
      "The stacks of this process, Python and C++, as text. Call it on a thread that is not the main one.");
}

}  // namespace muster::python
