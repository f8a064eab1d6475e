#include "muster/cluster/wire.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <set>

#include "muster/cluster/variables.h"

namespace muster::cluster {
namespace {

using ::testing::HasSubstr;

Member member(Role role, std::uint32_t rank) {
  return {.role = role,
          .node_id = fmt::format("node-{}", rank),
          .rank = rank,
          .host_key = "boot:4026531840",
          .address = "fe80::1%eth0",
          .data_port = 40123,
          .local_name = "muster-0011223344556677",
          .pid = 4711,
          .process_space = "boot:4026531836",
          .host_name = "machine.example",
          .cores_key = 81 + rank,
          .incarnation = 1700000000000000000u + rank,
          .is_named = rank % 2 == 0,
          .has_left = rank == 3};
}

ProcessStats stats() {
  return {.counters =
              {.samples = 320, .cpu_us = 9, .own_us = {1, 2, 3, 4, 5, 6}, .waiting_us = 7, .core_wait_us = 8},
          .loss = -0.25,
          .memory_bytes = std::uint64_t{5} << 30,
          .round_trip_us = 120,
          .stage = 1,
          .metrics = {{"accuracy", 0.97}, {"loss", 1e300}},
          .marks = {{40, {.own_us = {1, 2, 3}, .waiting_us = 4}},
                    {41, {.own_us = {2, 3, 4}, .core_wait_us = 5}}}};
}

message::Status status() {
  message::Status status{.state = message::Status::State::recovering,
                         .recovers = true,
                         .worker_num = 2,
                         .server_num = 1,
                         .age = std::chrono::hours(30),
                         .without_step = std::chrono::seconds(3),
                         .text = "worker 1 is waited for"};
  status.nodes.push_back({.node_id = "node-0",
                          .address = "fe80::1%eth0",
                          .pid = 4711,
                          .has_rank = true,
                          .is_connected = true,
                          .epoch = 3,
                          .step = 41,
                          .activity = {WorkPhase::computing, CallKind::none, 0, 7, 1},
                          .silence = std::chrono::milliseconds(120),
                          .stats = stats(),
                          .pace = {.window_us = 10'000'000, .steps = 41, .spent = stats().counters}});
  status.slow.push_back({1, SlowCause::network, 9000, 100, 400'000});
  status.nodes.push_back({.role = Role::server, .rank = 3, .has_left = true});
  return status;
}

std::vector<Message> one_of_each() {
  auto roster = std::make_shared<Roster>(Roster{
      .epoch = 3, .job_id = 7, .seed = 99, .recovers = true, .finished_calls = 2, .finished_collectives = 5});
  for (std::uint32_t rank = 0; rank < 5; ++rank) roster->workers.push_back(member(Role::worker, rank));
  roster->servers.push_back(member(Role::server, 0));
  const Failure failure{Code::peer_lost, "worker 2 is gone", 69};
  return {
      {0, 0, message::Register{member(Role::worker, 0), 8, 1}},
      {7, 4, message::Register{member(Role::worker, 0), 8, 1, true, true}},
      {0, 0,
       message::Register{.member = member(Role::worker, 0),
                         .worker_num = 8,
                         .strict = true,
                         .traits = {{"script", "00112233"}, {"OMP_NUM_THREADS", ""}},
                         .secret = {5, 1700000000000000000u}}},
      {0, 0,
       message::Register{
           .member = member(Role::worker, 0),
           .worker_num = 8,
           .recovers = true,
           .memory = {.fresh = true,
                      .found = {{7, 8, 99, 2, 41, false, true, {0, 3}, "step 300 of call 2", "/points/job-7"},
                                {8, 2, {}, 0, 0, true, false, {}, "start of call 0", "/points/job-8"}}}}},
      {7, 4,
       message::Register{.member = member(Role::worker, 4),
                         .worker_num = 8,
                         .recovers = true,
                         .memory = {.seed = 99,
                                    .finished_calls = 2,
                                    .finished_collectives = 5,
                                    .roster_epoch = 3,
                                    .incarnations = {1700000000000000004u, 5}}}},
      {7, 1, message::Accept{std::chrono::milliseconds(250), 12, "space"}},
      {7, 1, message::Refuse{failure}},
      {7, 1, message::Waiting{"1 of 2"}},
      {7, 1, message::RosterReady{roster}},
      {7, 1, message::Beat{}},
      {7, 1, message::Beat{123456789, {3, 1000, true, 2}}},
      {7, 1, message::Beat{.leaves = true}},
      {7, 1, message::Beat{.left = 3, .waits_for = 1700000000u}},
      {7, 1, message::Beat{.waits_for = 0}},
      {7, 1, message::PeerGone{Role::server, 2, 99}},
      {7, 1, message::PeerGone{Role::worker, 1, 99, SIGKILL}},
      {7, 1, message::Leave{-9, 17, "ValueError: no"}},
      {7, 1, message::LeaveAck{}},
      {7, 1, message::Ended{}},
      {7, 1, message::Ended{failure}},
      {7, 1, message::EndedAck{}},
      {7, 1, message::EpochLost{failure}},
      {7, 1, message::Rejoin{{40124, "muster-8899aabbccddeeff"}, {2, 17}}},
      {7, 1, message::LinkLost{"the connection to worker 3 broke"}},
      {7, 1, message::Beat{41, {}, {WorkPhase::reading_data, CallKind::all_reduce, 18, 40, 2, {1, 3}}}},
      {7, 1, message::Beat{.step = 41, .stats = stats()}},
      {7, 1, message::Beat{.stats = ProcessStats{.loss = std::nan(""), .learning_rate = 0.1}}},
      {7, 1,
       message::Beat{
           no_step, {}, {.phase = WorkPhase::serving, .awaited = {2, 1}, .serving = {40, 5120, 7, 3}}}},
      {7, 1, message::Stuck{"rank 2: in data loading at step 41"}},
      {0, 0, message::StatusRequest{}},
      {7, 1, status()},
      {0, 0, message::Echo{5, 1700000000000000u, "0123456789"}},
      {0, 0, message::MeetDoctors{{"alpha", "10.0.0.7", 40125}}},
      {0, 0, message::Doctors{{{"alpha", "10.0.0.7", 40125}, {"beta", "10.0.0.8", 40126}}}},
      {7, 1, message::Parameters{{5, 1024, true, {1, 0xffffffff}, {"conv1.weight", "fc.bias"}}}},
      {0, 0, message::EndedEarly{"2"}},
      {0, 0, message::StacksRequest{}},
      {0, 0, message::StacksRequest{Role::server, 3}},
      {7, 1, message::AskStacks{}},
      {7, 1, message::AskStacks{false}},
      {7, 1, message::Stacks{"  File \"train.py\", line 3, in f\n"}},
      {7, 1,
       message::ProcessStacks{Role::worker, 3, true, 4711, "3", "10.0.0.7", "in the script", "", "  #0 f\n"}},
      {7, 1, message::StacksEnd{936}},
  };
}

Result<net::Frame> frame_of(const std::vector<std::byte>& bytes) {
  net::FrameDecoder decoder(scheduler_payload_limit_bytes);
  decoder.append(bytes);
  MUSTER_TRY(auto frame, decoder.next());
  if (!frame) return fail(Code::corrupt, "incomplete");
  return *std::move(frame);
}

TEST(Wire, BringsEveryMessageBackAsItWas) {
  for (const Message& message : one_of_each()) {
    const auto frame = frame_of(encode_message(message));
    ASSERT_TRUE(frame);
    const auto decoded = decode_message(*frame);
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(*decoded, message);
  }
}

TEST(Wire, RefusesEveryTruncatedOrLengthenedPayload) {
  for (const Message& message : one_of_each()) {
    net::Frame frame = *frame_of(encode_message(message));
    net::Frame longer = frame;
    longer.payload.push_back(std::byte{0});
    EXPECT_FALSE(decode_message(longer)) << "type " << frame.header.type;
    while (!frame.payload.empty()) {
      frame.payload.pop_back();
      ASSERT_FALSE(decode_message(frame))
          << "type " << frame.header.type << ", " << frame.payload.size() << " bytes";
    }
  }
}

TEST(Wire, SurvivesGarbage) {
  for (std::uint64_t seed = 0; seed < 20000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const RandomStream random(seed, 1);
    net::Frame frame;
    frame.header.type =
        static_cast<std::uint16_t>(0x00ff + random.below(0, std::variant_size_v<MessageBody> + 3));
    frame.payload.resize(random.below(1, 200));
    for (std::size_t i = 0; i < frame.payload.size(); ++i)
      frame.payload[i] =
          static_cast<std::byte>(random.below(2 + i, random.below(1000 + i, 2) == 0 ? 4 : 256));
    const auto decoded = decode_message(frame);  // must neither crash nor take much memory
    if (decoded) {
      const net::Frame again = *frame_of(encode_message(*decoded));
      EXPECT_EQ(decode_message(again).value(), *decoded) << "two ways to say one thing";
    }
  }
}

TEST(Wire, SurvivesSingleWrongBytes) {
  for (const Message& message : one_of_each()) {
    const net::Frame frame = *frame_of(encode_message(message));
    for (std::size_t i = 0; i < frame.payload.size(); ++i) {
      for (const unsigned flip : {0x01u, 0x80u, 0xffu}) {
        net::Frame damaged = frame;
        damaged.payload[i] ^= static_cast<std::byte>(flip);
        const auto decoded = decode_message(damaged);
        if (decoded) {
          EXPECT_FALSE(*decoded == message);
        }
      }
    }
  }
}

TEST(Wire, RefusesUnknownTypesAndRoles) {
  net::Frame frame = *frame_of(encode_message({7, 1, message::LeaveAck{}}));
  frame.header.type = 0x0200;
  EXPECT_THAT(decode_message(frame).error().message, HasSubstr("0x0200"));
  frame = *frame_of(encode_message({7, 1, message::PeerGone{Role::worker, 0}}));
  frame.payload[0] = std::byte{3};
  EXPECT_THAT(decode_message(frame).error().message, HasSubstr("out of its range"));
}

TEST(Wire, HasAMessageOfEachTypeInItsTests) {
  std::set<std::size_t> types;
  for (const Message& message : one_of_each()) types.insert(message.body.index());
  EXPECT_EQ(types.size(), std::variant_size_v<MessageBody>);
}

TEST(Wire, CutsWhatAProcessHasFoundToWhatIsRead) {
  FoundJob large{.worker_num = worker_num_max, .folder = std::string(2 * path_limit_bytes, 'x')};
  large.ranks.resize(2 * found_ranks_max);
  const message::Register request{.member = member(Role::worker, 0),
                                  .memory = {.found = {found_jobs_max + 1, large}}};
  const auto bytes = encode_message({0, 0, request});
  EXPECT_LT(bytes.size(), node_payload_limit_bytes);
  const auto decoded = decode_message(*frame_of(bytes));
  ASSERT_TRUE(decoded) << decoded.error().message;
  const auto& found = std::get<message::Register>(decoded->body).memory.found;
  EXPECT_EQ(found.size(), found_jobs_max);
  EXPECT_EQ(found[0].ranks.size(), found_ranks_max);
  EXPECT_EQ(found[0].folder.size(), path_limit_bytes);
}

TEST(Wire, CutsTheMembersThatAProcessNamesToWhatIsRead) {
  const message::Register request{
      .member = member(Role::worker, 0),
      .memory = {.incarnations = std::vector<std::uint64_t>(members_told_max + 1, 7)}};
  const auto bytes = encode_message({7, 4, request});
  EXPECT_LT(bytes.size(), node_payload_limit_bytes);
  const auto decoded = decode_message(*frame_of(bytes));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(std::get<message::Register>(decoded->body).memory.incarnations.size(), members_told_max);
}

TEST(Wire, RefusesMoreDoctorsThanEverMeet) {
  const message::Doctors many{std::vector<message::Doctor>(doctors_max + 1)};
  EXPECT_FALSE(decode_message(*frame_of(encode_message({0, 0, many}))));
}

TEST(Wire, RefusesARosterWhoseRanksAreNotInOrder) {
  auto roster = std::make_shared<Roster>();
  roster->workers = {member(Role::worker, 1), member(Role::worker, 0)};
  EXPECT_FALSE(decode_message(*frame_of(encode_message({7, 1, message::RosterReady{roster}}))));
}

template <class Body>
Body as_read(const Body& body) {
  return std::get<Body>(decode_message(*frame_of(encode_message({7, 1, body})))->body);
}

TEST(Wire, MakesEveryTextOfANodePrintable) {
  const std::string odd = "a\x1b[2J\nb\u009b";
  const std::string shown = "a\\x1b[2J\\nb\\x9b";
  Member self;
  for (std::string* text :
       {&self.node_id, &self.host_key, &self.address, &self.local_name, &self.process_space, &self.host_name})
    *text = odd;
  const auto request = as_read(message::Register{.member = self, .traits = {{odd, odd}}});
  for (const std::string* text :
       {&request.member.node_id, &request.member.host_key, &request.member.address,
        &request.member.local_name, &request.member.process_space, &request.member.host_name,
        &request.traits[0].key, &request.traits[0].value})
    EXPECT_EQ(*text, shown);
  EXPECT_EQ(as_read(message::Leave{1, no_step, odd}).reason, shown);
  EXPECT_EQ(as_read(message::LinkLost{odd}).reason, shown);
  EXPECT_EQ(as_read(message::Rejoin{{1, odd}, {}}).endpoint.local_name, shown);
  EXPECT_EQ(as_read(message::MeetDoctors{{odd, odd, 1}}).self.host, shown);
  EXPECT_EQ(as_read(message::MeetDoctors{{odd, odd, 1}}).self.address, shown);
}

TEST(Wire, KeepsTheLinesOfASchedulersTablesAndNothingElse) {
  const std::string odd = "1 of 2\n  absent\x1b[31m";
  const std::string shown = "1 of 2\n  absent\\x1b[31m";
  EXPECT_EQ(as_read(message::Waiting{odd}).text, shown);
  EXPECT_EQ(as_read(message::Stuck{odd}).text, shown);
  EXPECT_EQ(as_read(message::Refuse{{.message = odd}}).failure.message, shown);
  EXPECT_EQ(as_read(message::Status{.text = odd}).text, shown);
  EXPECT_EQ(as_read(message::Accept{.process_space = odd}).process_space, "1 of 2\\n  absent\\x1b[31m");
  const auto status = as_read(message::Status{.nodes = {{.node_id = "\n", .address = "\t"}}});
  EXPECT_EQ(status.nodes[0].node_id, "\\n");
  EXPECT_EQ(status.nodes[0].address, "\\t");
}

TEST(Wire, CutsLongWordsBetweenCharacters) {
  std::string reason = "x";
  for (int i = 0; i < 10000; ++i) reason += "\u00e9";
  const auto decoded = decode_message(*frame_of(encode_message({7, 1, message::Leave{1, no_step, reason}})));
  ASSERT_TRUE(decoded);
  const auto& cut = std::get<message::Leave>(decoded->body).reason;
  EXPECT_EQ(cut.size(), words_limit_bytes - 1);
  EXPECT_TRUE(reason.starts_with(cut));
}

TEST(Wire, CutsTooManyTraitsAndRefusesThemFromOthers) {
  message::Register request{.member = member(Role::worker, 0), .traits = {traits_max + 1, Trait{"k", "v"}}};
  net::Frame frame = *frame_of(encode_message({0, 0, request}));
  const auto decoded = decode_message(frame);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(std::get<message::Register>(decoded->body).traits.size(), traits_max);
  const std::size_t traits_size_bytes = traits_max * (4 + 1 + 4 + 1);
  frame.payload[frame.payload.size() - traits_size_bytes - 4] = std::byte{traits_max + 1};
  frame.payload.resize(frame.payload.size() + 8);  // an empty trait more
  EXPECT_FALSE(decode_message(frame));
}

TEST(Wire, HasRoomForTheLargestRoster) {
  auto roster = std::make_shared<Roster>();
  for (std::uint32_t rank = 0; rank < worker_num_max; ++rank) {
    Member full = member(Role::worker, rank);
    for (std::string* text : {&full.node_id, &full.host_key, &full.address, &full.local_name,
                              &full.process_space, &full.host_name})
      text->assign(name_limit_bytes, 'n');
    roster->workers.push_back(full);
  }
  const auto bytes = encode_message({7, 1, message::RosterReady{roster}});
  EXPECT_LT(bytes.size(), scheduler_payload_limit_bytes);
  ASSERT_TRUE(decode_message(*frame_of(bytes)));
}

}  // namespace
}  // namespace muster::cluster
