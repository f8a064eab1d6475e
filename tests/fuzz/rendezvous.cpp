// What the launchers of several hosts say to each other: what is read and written again is read as the same,
// and nothing that is read could mean more than it should in a file of ssh or on a command line.
#include "fuzz.h"
#include "muster/launch/hosts/rendezvous_messages.h"

using namespace muster;

namespace {

void expect_harmless(const launch::HostReport& host) {
  for (const std::string& text : {host.host_key, host.interface, host.address})
    fuzz::expect(text.find_first_of("\n\r\t\"'\\#,;$`") == std::string::npos);
  fuzz::expect(host.interface.find(' ') == std::string::npos && host.address.find(' ') == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace message = launch::rendezvous_message;
  constexpr std::uint16_t type_first = 0x0320;
  fuzz::Input input(data, size);
  net::Frame frame;
  frame.header.type = static_cast<std::uint16_t>(type_first + input.byte());
  frame.payload.assign(input.rest().begin(), input.rest().end());
  const auto read = launch::decode_rendezvous_message(frame);
  if (!read) return 0;
  if (const auto* report = std::get_if<message::Report>(&*read)) expect_harmless(report->host);
  const auto* roster = std::get_if<message::Roster>(&*read);
  if (roster == nullptr) return 0;
  for (const launch::HostReport& host : roster->hosts) expect_harmless(host);
  net::FrameDecoder decoder(launch::rendezvous_roster_bytes_max);
  decoder.append(launch::encode(*read));
  const auto written = decoder.next();
  fuzz::expect(written && *written);
  const auto again = launch::decode_rendezvous_message(**written);
  fuzz::expect(again && std::get<message::Roster>(*again).hosts == roster->hosts);
  return 0;
}
