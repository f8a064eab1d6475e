// Who tries to be a process of a running job that it is not; real sockets, with and without certificates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "job.h"
#include "muster/cluster/recovery_log.h"
#include "tests/unit/base/mentions.h"
#include "tests/unit/net/authority.h"
#include "unauthorized_peer.h"

namespace muster::process_test {
namespace {

using cluster::Message;
using cluster::message::Leave;
using cluster::message::Refuse;
using cluster::message::Register;
using net::testing_only::Authority;
using net::testing_only::Folder;
using net::testing_only::ProcessFiles;
using ::testing::HasSubstr;
using ::testing::Optional;

// A recovering job of workers "0" and "1" that has formed. `files_of` are the variables of each process.
class RunningJob {
 public:
  explicit RunningJob(const std::function<Variables(const std::string& id)>& files_of) : files_of_(files_of) {
    job_.set("MS_ENABLE_RECOVERY", "1");
    job_.set("MS_RECOVERY_PATH", recovery_.path("job"));
    scheduler_.emplace(job_.scheduler(files_of("scheduler")));
    for (const char* id : {"0", "1"}) workers_.push_back(job_.worker(id, files_of(id)));
    for (Child& worker : workers_) EXPECT_TRUE(worker.printed("epoch 1 ")) << worker.output();
  }

  std::uint16_t port() const { return job_.port(); }
  Child& worker(std::size_t i) { return workers_[i]; }
  // What every member knows.
  std::shared_ptr<const cluster::Roster> roster() const {
    const auto bytes = real_files().read(recovery_.path("job") + "/scheduler.log");
    return cluster::read_log(*bytes)->job->roster;
  }
  void restart_scheduler() {
    scheduler_->signal(SIGKILL);
    EXPECT_TRUE(scheduler_->ended_within(soon));
    scheduler_.emplace(job_.scheduler(files_of_("scheduler")));
    for (Child& worker : workers_) EXPECT_TRUE(worker.printed("is there again")) << worker.output();
  }
  // It is refused as `node_id`, and neither it nor its going changes anything for worker 1.
  void expect_is_not_worker_1(const std::string& node_id, std::shared_ptr<const net::Security> security) {
    const auto known = roster();
    for (const std::uint64_t job : {known->job_id, std::uint64_t{0}}) {
      UnauthorizedPeer unauthorized(port(), security);
      Register request{
          .member = known->workers[1], .worker_num = 2, .recovers = true, .secret = cluster::new_secret()};
      request.member.node_id = node_id;
      unauthorized.say({job, job == 0 ? 0 : known->epoch, request});
      unauthorized.say({known->job_id, known->epoch, Leave{}});
      const auto answer = unauthorized.hear();
      ASSERT_TRUE(answer);
      ASSERT_TRUE(std::holds_alternative<Refuse>(answer->body)) << answer->body.index();
      EXPECT_THAT(std::get<Refuse>(answer->body).failure.message, HasSubstr("know"));
    }
  }
  void expect_end_well() {
    for (Child& worker : workers_) worker.tell("leave");
    for (Child& worker : workers_) EXPECT_THAT(worker.ended_within(soon), Optional(0)) << worker.output();
    EXPECT_THAT(scheduler_->ended_within(soon), Optional(0)) << scheduler_->output();
    for (Child& worker : workers_)
      EXPECT_THAT(worker.output(), ::testing::Not(HasSubstr("epoch 2 "))) << "undisturbed";
  }

 private:
  std::function<Variables(const std::string&)> files_of_;
  Folder recovery_;
  Job job_{2};
  std::optional<Child> scheduler_;
  std::vector<Child> workers_;
};

// An authority's files for each node alone.
class FilesOfNodes {
 public:
  Variables of(const std::string& id) {
    auto& folder = folders_[id];
    if (folder == nullptr) {
      folder = std::make_unique<Folder>();
      ProcessFiles files;
      for (net::CertificateSpec* spec : {&files.server, &files.client})
        spec->alternative_names.push_back("URI:muster:node:" + id);
      const auto options = files.write(*folder, authority_, authority_.pem(), authority_.crl());
      for (const std::string& path : {options.server_cert_path, options.client_cert_path})
        ::chmod(path.c_str(), 0600);
      folder->write("config.json", R"({"server_cert_path": "server.p12", "client_cert_path": "client.p12",
                                       "ca_cert_path": "ca.pem", "crl_path": "crl.pem"})");
      ::chmod(folder->write("password", net::testing_only::password).c_str(), 0600);
    }
    return {{"MUSTER_TLS_CONFIG", folder->path("config.json")},
            {"MUSTER_TLS_CLIENT_PASSWORD_FILE", folder->path("password")},
            {"MUSTER_TLS_SERVER_PASSWORD_FILE", folder->path("password")}};
  }
  std::shared_ptr<const net::Security> security_of(const std::string& id) {
    std::map<std::string, std::string, std::less<>> variables;
    for (const auto& [name, value] : of(id)) variables[name] = value;
    return cluster::open_security(cluster::read_security_settings(FixedEnvironment(variables)), false)
        .value();
  }

 private:
  Authority authority_{"Job authority"};
  std::map<std::string, std::unique_ptr<Folder>> folders_;
};

TEST(Identity, OfAnotherNodeIsNotTakenWithOnesOwnCertificate) {
  FilesOfNodes files;
  RunningJob job([&](const std::string& id) { return files.of(id); });
  job.expect_is_not_worker_1("0", files.security_of("0"));
  job.restart_scheduler();
  job.expect_is_not_worker_1("0", files.security_of("0"));
  job.expect_end_well();
}

TEST(Identity, OfANodeIsNotTakenByAnUnauthorizedPeerWhoKnowsItsIncarnation) {
  RunningJob job([](const std::string&) { return Variables{}; });
  job.expect_is_not_worker_1("1", nullptr);
  job.expect_is_not_worker_1("0", nullptr);
  job.restart_scheduler();
  job.expect_is_not_worker_1("1", nullptr);
  job.expect_end_well();
}

// The authority's certificate for a node that this job does not have, and no word of being that one.
TEST(Identity, OfACertificateIsThatOfTheProcessWhateverItSays) {
  FilesOfNodes files;
  RunningJob job([&](const std::string& id) { return files.of(id); });
  job.worker(1).signal(SIGKILL);
  ASSERT_TRUE(job.worker(0).printed("lost: ")) << job.worker(0).output();
  UnauthorizedPeer unauthorized(job.port(), files.security_of("7"));
  Register request{.member = {.node_id = "7", .address = "127.0.0.1", .incarnation = 1, .is_named = false},
                   .worker_num = 2,
                   .recovers = true,
                   .secret = cluster::new_secret()};
  unauthorized.say({0, 0, request});
  const auto answer = unauthorized.hear();
  ASSERT_TRUE(answer);
  ASSERT_TRUE(std::holds_alternative<Refuse>(answer->body)) << answer->body.index();
  EXPECT_THAT(std::get<Refuse>(answer->body).failure.message, Mentions("1", "workers"));
}

}  // namespace
}  // namespace muster::process_test
