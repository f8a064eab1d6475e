#include "muster/launch/console.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "muster/net/net.h"

namespace muster::launch {
namespace {
namespace console_test {

using ::testing::Eq;
using ::testing::Gt;

struct Ends {
  net::Descriptor reader, writer;
};

Ends open_pipe() {
  std::array<int, 2> ends{};
  EXPECT_THAT(::pipe2(ends.data(), O_CLOEXEC), Eq(0));
  return {net::Descriptor(ends[0]), net::Descriptor(ends[1])};
}

// A terminal of 20 columns: what is written to `writer` shows on `reader`.
Ends open_terminal() {
  net::Descriptor reader(::posix_openpt(O_RDWR | O_NOCTTY));
  EXPECT_THAT(::grantpt(reader.get()) | ::unlockpt(reader.get()), Eq(0));
  net::Descriptor writer(::open(::ptsname(reader.get()), O_RDWR | O_NOCTTY));
  const winsize size{.ws_row = 24, .ws_col = 20, .ws_xpixel = 0, .ws_ypixel = 0};
  EXPECT_THAT(::ioctl(writer.get(), TIOCSWINSZ, &size), Eq(0));
  return {std::move(reader), std::move(writer)};
}

std::string shown(Console& console, const Ends& ends) {
  console.flush(1000);
  std::array<char, 4096> bytes;
  const ssize_t size = ::read(ends.reader.get(), bytes.data(), bytes.size());
  return {bytes.data(), static_cast<std::size_t>(size)};
}

TEST(Console, PutsTheLabelBeforeALine) {
  const Ends out = open_pipe(), error = open_pipe();
  Console console(out.writer.get(), error.writer.get());
  console.line(Console::out, "worker 2", "loss is 2.3");
  console.line(Console::error, {}, "muster: over");
  EXPECT_THAT(shown(console, out), Eq("[worker 2] loss is 2.3\n"));
  EXPECT_THAT(shown(console, error), Eq("muster: over\n"));
}

TEST(Console, KeepsTheOrderOfTwoStreamsThatAreOneFile) {
  const Ends out = open_pipe();
  const net::Descriptor error(::dup(out.writer.get()));
  Console console(out.writer.get(), error.get());
  console.line(Console::error, "a", "1");
  console.line(Console::out, "a", "2");
  console.line(Console::error, "a", "3");
  EXPECT_THAT(shown(console, out), Eq("[a] 1\n[a] 2\n[a] 3\n"));
}

TEST(Console, ShowsNoLiveLineWhereThereIsNoTerminal) {
  const Ends out = open_pipe();
  Console console(out.writer.get(), out.writer.get());
  console.live("worker 0", "10 %");
  console.line(Console::out, "worker 0", "done");
  EXPECT_THAT(shown(console, out), Eq("[worker 0] done\n"));
}

TEST(Console, KeepsTheLiveLineBelowTheOthersAndWithinTheTerminal) {
  const Ends terminal = open_terminal();
  Console console(terminal.writer.get(), terminal.writer.get());
  console.live("worker 0", "ééé 50 % of a long line");
  EXPECT_THAT(shown(console, terminal), Eq("[worker 0] ééé 50 %"));
  console.line(Console::error, "a", "note");
  EXPECT_THAT(shown(console, terminal), Eq("\r\033[K[a] note\r\n[worker 0] ééé 50 %"));
  console.live({}, {});
  console.line(Console::out, "a", "end");
  EXPECT_THAT(shown(console, terminal), Eq("\r\033[K[a] end\r\n"));
}

TEST(Console, PutsTheStateOfTheJobBeforeTheProgressOfAProcess) {
  const Ends terminal = open_terminal();
  Console console(terminal.writer.get(), terminal.writer.get());
  console.state("running");
  EXPECT_THAT(shown(console, terminal), Eq("running"));
  console.live("a", "5 %");
  EXPECT_THAT(shown(console, terminal), Eq("\r\033[Krunning  [a] 5 %"));
  console.state({});
  EXPECT_THAT(shown(console, terminal), Eq("\r\033[K[a] 5 %"));
}

TEST(Console, GivesEachLabelAColourOnATerminal) {
  const Ends terminal = open_terminal();
  Console console(terminal.writer.get(), terminal.writer.get(), true);
  for (const char* label : {"a", "b"}) console.introduce(label);
  console.line(Console::out, "a", "1");
  console.line(Console::error, "b", "2");
  EXPECT_THAT(shown(console, terminal), Eq("\033[36m[a]\033[0m 1\r\n\033[33m[b]\033[0m 2\r\n"));
}

TEST(Console, HasNoColoursInAPipe) {
  const Ends out = open_pipe();
  Console console(out.writer.get(), out.writer.get(), true);
  console.introduce("a");
  console.line(Console::out, "a", "1");
  EXPECT_THAT(shown(console, out), Eq("[a] 1\n"));
}

TEST(Console, HoldsBackWhatNobodyReadsYet) {
  const Ends out = open_pipe();
  Console console(out.writer.get(), out.writer.get());
  while (!console.is_full()) console.line(Console::out, "a", std::string(1000, 'x'));
  console.flush(0);
  EXPECT_TRUE(console.is_waiting(Console::out));
}

}  // namespace console_test
}  // namespace
}  // namespace muster::launch
