// What people, platforms and other hosts hand to the launcher: whatever stands there, it is read or refused,
// and what was read from a rank table or a message can be written and read again.
#include "fuzz.h"
#include "muster/json/json.h"
#include "muster/launch/hosts/agent_messages.h"
#include "muster/launch/hosts/rendezvous_messages.h"
#include "muster/launch/rank_table.h"
#include "muster/launch/settings/hostlist.h"
#include "muster/launch/settings/sources.h"

using namespace muster;
using namespace muster::launch;

namespace {

// Errors go to a terminal: short, and about the file.
template <class T>
void expect_named(const Result<T>& read) {
  if (read) return;
  fuzz::expect(!read.error().message.empty() && read.error().message.size() < 4096);
}

void read_rank_table(std::string_view text) {
  const auto table = parse_rank_table(text, "table.json");
  expect_named(table);
  if (!table) return;
  fuzz::expect(table->device_count() > 0);
  const std::string written = rank_table_text(*table);
  const auto again = parse_rank_table(written, "again.json");
  fuzz::expect(again && rank_table_text(*again) == written);
}

void read_host_lists(std::string_view text) {
  for (const auto& hosts : {parse_hosts(text), parse_hostfile(text, "hostfile")}) {
    expect_named(hosts);
    if (!hosts) continue;
    fuzz::expect(!hosts->empty() && hosts->size() <= hosts_max);
    for (const HostSlots& host : *hosts) fuzz::expect(host.slots >= 0 && !host.name.starts_with('-'));
  }
}

void read_cards(std::string_view text) {
  expect_named(parse_hccn_conf(text, "hccn.conf"));
  const auto ids = parse_device_ids(text);
  expect_named(ids);
  if (ids) fuzz::expect(ids->size() <= rank_table_devices_max);
}

void read_slurm_lists(std::string_view text) {
  const auto names = parse_hostlist(text);
  expect_named(names);
  if (names) fuzz::expect(!names->empty() && names->size() <= hosts_max);
  const auto counts = parse_task_counts(text);
  expect_named(counts);
  if (counts) fuzz::expect(counts->size() <= hosts_max);
}

net::Frame frame_of(std::span<const std::byte> bytes) {
  net::FrameDecoder decoder(rendezvous_roster_bytes_max);
  decoder.append(bytes);
  auto frame = decoder.next();
  fuzz::expect(frame && *frame);
  return **std::move(frame);
}

// The frame's checksums fit, so that the fuzzer comes further than to them.
net::Frame framed(std::uint16_t first_type, std::uint8_t types, fuzz::Input& input) {
  const auto type = static_cast<std::uint16_t>(first_type + input.byte() % types);
  return frame_of(net::encode_frame({.type = type}, input.rest()));
}

void hear_launcher_in_rendezvous(fuzz::Input& input) {
  const auto message = decode_rendezvous_message(framed(0x0320, 6, input));
  expect_named(message);
  if (message) fuzz::expect(decode_rendezvous_message(frame_of(encode(*message))).has_value());
}

void hear_agent(fuzz::Input& input) {
  const auto message = agent::decode(framed(0x0300, 24, input));
  expect_named(message);
  if (!message) return;
  const std::string encoded = agent::encode(*message);
  const auto again = agent::decode(frame_of(std::as_bytes(std::span(encoded))));
  fuzz::expect(again && *again == *message);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  switch (input.byte() % 8) {
    case 0:
      read_rank_table(input.text());
      break;
    case 1:
      read_host_lists(input.text());
      break;
    case 2:
      read_cards(input.text());
      break;
    case 3:
      expect_named(parse_job_file(input.text(), {.name = "job.toml", .folder = "/job"}));
      break;
    case 4:
      expect_named(json::parse(input.text(), "file.json"));
      break;
    case 5:
      hear_launcher_in_rendezvous(input);
      break;
    case 6:
      hear_agent(input);
      break;
    default:
      read_slurm_lists(input.text());
  }
  return 0;
}
