// A job that does not go on, and observers of a real scheduler.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "job.h"
#include "muster/cluster/cluster.h"
#include "muster/cluster/wire.h"

namespace muster::process_test {
namespace {

using cluster::Visit;
using cluster::message::Doctors;
using cluster::message::Echo;
using cluster::message::MeetDoctors;
using cluster::message::Status;
using cluster::message::StatusRequest;
using ::testing::HasSubstr;

constexpr auto answer_limit = 10s;

Result<std::unique_ptr<Visit>> visit(net::Loop& loop, const Job& job) {
  return Visit::open(loop, real_clock(), {"127.0.0.1", job.port()}, {.limit = answer_limit});
}

Result<Status> ask_status(const Job& job) {
  net::Loop loop;
  MUSTER_TRY(const auto made, visit(loop, job));
  MUSTER_TRY(const cluster::Message answer, made->ask(StatusRequest{}, answer_limit));
  return std::get<Status>(answer.body);
}

// Asks until the answer is as it should be in the end.
Status wait_for_status(const Job& job, const std::function<bool(const Status&)>& is_it) {
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (true) {
    const auto status = ask_status(job);  // the scheduler may not listen yet
    if (status && is_it(*status)) return *status;
    if (std::chrono::steady_clock::now() < deadline) continue;
    ADD_FAILURE() << (status ? "the status is never as it should be" : status.error().message);
    return status.value_or(Status{});
  }
}

TEST(Watch, SaysEverywhereWhoWaitsForWhomAndThatItGoesOn) {
  Job job(3);
  Child scheduler = job.scheduler({{"MUSTER_STUCK_LIMIT", "1"}});
  std::vector<Child> workers;
  for (const char* id : {"0", "1", "2"}) workers.push_back(job.worker(id));
  for (Child& worker : workers) ASSERT_TRUE(worker.printed("rank ")) << worker.output();
  for (Child& worker : workers) worker.tell("step 40");
  wait_for_status(job, [](const Status& status) {
    return std::all_of(status.nodes.begin(), status.nodes.end(),
                       [](const Status::Node& node) { return node.step == 40; });
  });
  workers[0].tell("at all_reduce 18");
  workers[1].tell("at all_reduce 18");
  workers[2].tell("at reading-data");
  for (Child& worker : workers) worker.tell("step 41");
  const std::string who = "rank 2: in data loading at step 41; ranks 0, 1: in all_reduce 18";
  EXPECT_TRUE(scheduler.printed(who)) << scheduler.output();
  for (Child& worker : workers) EXPECT_TRUE(worker.printed(who)) << worker.output();
  for (Child& worker : workers) worker.tell("step 42");
  for (Child& worker : workers) EXPECT_TRUE(worker.printed("the job goes on")) << worker.output();
}

TEST(Watch, GivesAVisitorTheStatusAndTheJobGoesOn) {
  Job job(2);
  Child scheduler = job.scheduler();
  Child first = job.worker("0");
  const Status forming = wait_for_status(job, [](const Status& status) { return status.nodes.size() == 1; });
  EXPECT_EQ(forming.state, Status::State::forming);
  Child second = job.worker("1");
  ASSERT_TRUE(first.printed("rank 0")) << first.output();
  ASSERT_TRUE(second.printed("rank 1")) << second.output();
  second.tell("step 7");
  const Status running = wait_for_status(
      job, [](const Status& status) { return status.nodes.size() == 2 && status.nodes[1].step == 7; });
  EXPECT_EQ(running.state, Status::State::running);
  ASSERT_EQ(running.nodes.size(), 2u);
  EXPECT_EQ(running.nodes[1].pid, second.pid());
  EXPECT_EQ(running.nodes[1].step, 7u);
  for (Child* worker : {&first, &second}) {
    worker->tell("leave");
    EXPECT_EQ(worker->ended_within(soon), 0) << worker->output();
  }
  EXPECT_EQ(scheduler.ended_within(soon), 0) << scheduler.output();
}

TEST(Watch, EchoesToAVisitorWithItsClock) {
  Job job(2);
  Child scheduler = job.scheduler();
  Child worker = job.worker("0");
  wait_for_status(job, [](const Status&) { return true; });
  net::Loop loop;
  const auto observer = visit(loop, job);
  ASSERT_TRUE(observer) << observer.error().message;
  const auto before = std::chrono::system_clock::now().time_since_epoch();
  const auto heard = (*observer)->ask(Echo{.number = 3, .filling = "0123"}, answer_limit);
  ASSERT_TRUE(heard) << heard.error().message;
  const Echo& echo = std::get<Echo>(heard->body);
  EXPECT_EQ(echo.number, 3u);
  EXPECT_EQ(echo.filling, "0123");
  EXPECT_GE(std::chrono::microseconds(echo.wall_clock_us) + 1ms, before);
}

TEST(Watch, BringsDoctorsTogetherAndTellsWhenOneGoes) {
  Job job(2);
  Child scheduler = job.scheduler();
  wait_for_status(job, [](const Status&) { return true; });
  net::Loop loop;
  const auto first = visit(loop, job);
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_TRUE((*first)->ask(MeetDoctors{{"alpha", "127.0.0.1", 1}}, answer_limit));
  auto second = visit(loop, job);
  ASSERT_TRUE(second) << second.error().message;
  const auto both = (*second)->ask(MeetDoctors{{"beta", "127.0.0.1", 2}}, answer_limit);
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ(std::get<Doctors>(both->body).doctors.size(), 2u);
  EXPECT_EQ(std::get<Doctors>((*first)->hear(answer_limit)->body).doctors.size(), 2u);
  second->reset();
  EXPECT_EQ(std::get<Doctors>((*first)->hear(answer_limit)->body).doctors.size(), 1u);
}

TEST(Visit, SaysThatNobodyListens) {
  Job job(1);
  net::Loop loop;
  const auto observer = visit(loop, job);
  ASSERT_FALSE(observer);
  EXPECT_THAT(observer.error().message, HasSubstr("refused"));
}

}  // namespace
}  // namespace muster::process_test
