// Messages between the launchers of several hosts, and their bytes: docs/formats/rendezvous.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "muster/base/base.h"
#include "muster/net/net.h"

namespace muster::launch {

inline constexpr std::int64_t rendezvous_version = 2;
inline constexpr std::int64_t rendezvous_hosts_max = 4096;
inline constexpr std::size_t rendezvous_ports_max = 64;                 // of one host
inline constexpr std::size_t rendezvous_sources_max = 64;               // of the first host
inline constexpr std::uint64_t host_report_bytes_max = 16 << 10;        // what the first host takes
inline constexpr std::uint64_t rendezvous_roster_bytes_max = 16 << 20;  // what the others take

// What one host tells all others.
struct HostReport {
  std::int64_t index = 0;                 // which of the job's hosts it is
  std::vector<std::uint16_t> ports = {};  // that are free there, and held
  std::string host_key = {};              // "ssh-ed25519 AAAA...", public
  std::string interface = {};             // its network interface on the way to the others
  std::string address = {};               // as the first host sees it, who fills it in
  std::vector<std::string> sources = {};  // of the first host: where its connections to the others come from

  friend bool operator==(const HostReport&, const HostReport&) = default;
};

namespace rendezvous_message {

// To the first host, first of all.
struct Report {
  std::int64_t version = rendezvous_version;
  std::int64_t hosts = 0;   // of the job, as this host was told
  std::string preset = {};  // likewise
  HostReport host = {};
};
// To the others. The connection is closed behind it.
struct Refusal {
  std::string reason = {};
};
struct Roster {
  std::vector<HostReport> hosts = {};  // by index
};
// Both ways, so that a cable that was cut is noticed.
struct Beat {};
// To the first host: this host's work has ended. To the others: the job has.
struct Ended {
  int exit_code = 0;
  std::string reason = {};
};

}  // namespace rendezvous_message

using RendezvousMessage =
    std::variant<rendezvous_message::Report, rendezvous_message::Refusal, rendezvous_message::Roster,
                 rendezvous_message::Beat, rendezvous_message::Ended>;

// A whole frame.
std::vector<std::byte> encode(const RendezvousMessage& message);
// Errors say what is wrong with it; nothing in the message can be dangerous in a file of ssh or on a command
// line.
Result<RendezvousMessage> decode_rendezvous_message(const net::Frame& frame);

// "ssh-ed25519 AAAA...": a key's type and the key, and nothing behind that.
bool is_public_key(std::string_view text);

}  // namespace muster::launch
