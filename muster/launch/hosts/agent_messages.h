// Messages between a launcher and its agents on other hosts. Byte by byte: docs/formats/agent.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "muster/base/base.h"
#include "muster/launch/launch_spec.h"
#include "muster/launch/lines.h"
#include "muster/net/net.h"

namespace muster::launch::agent {

// The agent's first line. What stands before it was written by the shell there. The number is the format's.
inline constexpr std::string_view greeting = "muster agent 3\n";
inline constexpr std::string_view greeting_of_any_format = "muster agent ";
inline constexpr std::size_t noise_size_max = 64 * 1024;
inline constexpr std::uint64_t payload_size_max = 4 << 20;

// How often each side says something, how long the launcher bears silence without a word about it, and how
// long both do before they take the other for lost and end what they run.
inline constexpr Duration heartbeat_interval = std::chrono::seconds(2);
inline constexpr Duration silence_told = std::chrono::seconds(5);
inline constexpr Duration lease_duration = std::chrono::seconds(10);

// ---- From the launcher ------------------------------------------------------------------------------------

struct Setup {
  std::string folder = {};  // in which the processes start
  friend bool operator==(const Setup&, const Setup&) = default;
};
struct Reserve {
  std::uint32_t count = 0;
  std::uint16_t min = 0, max = 0;
  friend bool operator==(const Reserve&, const Reserve&) = default;
};
struct MakeFile {
  std::string path = {};
  std::string contents = {};
  bool is_secret = false;  // kept in memory
  friend bool operator==(const MakeFile&, const MakeFile&) = default;
};
struct Start {
  std::uint32_t process = 0;
  std::vector<std::string> arguments = {};
  std::map<std::string, std::string> environment = {};
  std::optional<Preload> preload = {};
  friend bool operator==(const Start&, const Start&) = default;
};
struct Signal {
  std::uint32_t process = 0;
  std::uint32_t number = 0;
  friend bool operator==(const Signal&, const Signal&) = default;
};
struct Heartbeat {  // of both
  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};
// Everything is killed, and the agent leaves.
struct End {
  friend bool operator==(const End&, const End&) = default;
};

// ---- From the agent ---------------------------------------------------------------------------------------

struct Hello {
  std::string host = {};
  std::uint32_t pid = 0;
  std::string run_folder = {};
  friend bool operator==(const Hello&, const Hello&) = default;
};
struct Ports {
  std::vector<std::uint16_t> numbers = {};
  friend bool operator==(const Ports&, const Ports&) = default;
};
struct Started {
  std::uint32_t process = 0;
  std::uint32_t pid = 0;
  friend bool operator==(const Started&, const Started&) = default;
};
struct StartFailed {
  std::uint32_t process = 0;
  std::string message = {};
  friend bool operator==(const StartFailed&, const StartFailed&) = default;
};
struct Output {
  std::uint32_t process = 0;
  Stream stream = Stream::out;
  std::string bytes = {};
  friend bool operator==(const Output&, const Output&) = default;
};
struct Ended {
  std::uint32_t process = 0;
  std::uint32_t wait_status = 0;
  friend bool operator==(const Ended&, const Ended&) = default;
};
// It cannot go on, and ends everything.
struct Failed {
  std::string message = {};
  friend bool operator==(const Failed&, const Failed&) = default;
};
// The answer to End, the last word.
struct Gone {
  bool none_left = true;
  friend bool operator==(const Gone&, const Gone&) = default;
};

// What it has to say, for people.
struct Note {
  std::string line = {};
  friend bool operator==(const Note&, const Note&) = default;
};

using Message = std::variant<Setup, Reserve, MakeFile, Start, Signal, Heartbeat, End, Hello, Ports, Started,
                             StartFailed, Output, Ended, Failed, Gone, Note>;

std::string encode(const Message& message);
Result<Message> decode(const net::Frame& frame);

}  // namespace muster::launch::agent
