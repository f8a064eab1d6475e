// Jobs whose connections are protected, with real processes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "job.h"
#include "muster/cluster/cluster.h"
#include "tests/unit/base/mentions.h"
#include "tests/unit/net/authority.h"
#include "unauthorized_peer.h"

namespace muster::process_test {
namespace {

using net::testing_only::Authority;
using net::testing_only::Folder;
using net::testing_only::ProcessFiles;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;

void make_private(const std::string& path) { ::chmod(path.c_str(), 0600); }

// The files of one process, and the variables that name them.
class Certified {
 public:
  Certified(const Authority& issuer, const ProcessFiles& files) {
    use(files.write(folder_, issuer, issuer.pem(), issuer.crl()));
  }
  Certified(const Authority& issuer, const net::Credential& client) {
    use(ProcessFiles::write(folder_, issuer.issue(ProcessFiles().server), client, issuer.pem(),
                            issuer.crl()));
  }
  void read_again(const Authority& issuer) const { folder_.write("crl.pem", issuer.crl()); }
  Variables variables() const {
    return {{"MUSTER_TLS_CONFIG", folder_.path("config.json")},
            {"MUSTER_TLS_CLIENT_PASSWORD_FILE", folder_.path("password")},
            {"MUSTER_TLS_SERVER_PASSWORD_FILE", folder_.path("password")}};
  }

 private:
  void use(const net::CertificateOptions& options) {
    for (const std::string& path : {options.server_cert_path, options.client_cert_path}) make_private(path);
    folder_.write("config.json", R"({"server_cert_path": "server.p12", "client_cert_path": "client.p12",
                                     "ca_cert_path": "ca.pem", "crl_path": "crl.pem"})");
    make_private(folder_.write("password", net::testing_only::password));
  }
  Folder folder_;
};

Variables with_token(const Folder& folder, const std::string& token) {
  const std::string path = folder.write("token" + token.substr(0, 4), token);
  make_private(path);
  return {{"MUSTER_TOKEN_FILE", path}};
}
const std::string token = "0123456789abcdef0123456789abcdef";

void expect_ends_well(Child& scheduler, std::vector<Child*> workers) {
  for (Child* worker : workers) EXPECT_TRUE(worker->printed("rank ")) << worker->output();
  for (Child* worker : workers) worker->tell("leave");
  for (Child* worker : workers) EXPECT_THAT(worker->ended_within(soon), Optional(0)) << worker->output();
  EXPECT_THAT(scheduler.ended_within(soon), Optional(0)) << scheduler.output();
}

void expect_refused(Child& child, const std::string& text) {
  EXPECT_THAT(child.ended_within(soon), Optional(cluster::exit_code_refused)) << child.output();
  EXPECT_THAT(child.output(), HasSubstr(text));
  EXPECT_THAT(child.output(), Not(HasSubstr(net::testing_only::password)));
}

TEST(SecuredCluster, FormsAndEndsWellWithCertificates) {
  const Authority authority("Job authority");
  const Certified files(authority, ProcessFiles{});
  Job job(2);
  Child scheduler = job.scheduler(files.variables());
  Child first = job.worker("0", files.variables());
  Child second = job.worker("1", files.variables());
  expect_ends_well(scheduler, {&first, &second});
  EXPECT_EQ(scheduler.output(), "");
}

TEST(SecuredCluster, FormsAndEndsWellWithAToken) {
  const Folder folder;
  Job job(2);
  Child scheduler = job.scheduler(with_token(folder, token));
  Child first = job.worker("0", with_token(folder, token));
  Child second = job.worker("1", with_token(folder, token));
  expect_ends_well(scheduler, {&first, &second});
}

TEST(SecuredCluster, RefusesARevokedWorkerAndGoesOnWaiting) {
  Authority authority("Job authority");
  net::CertificateSpec of_node = ProcessFiles().client;
  of_node.alternative_names.push_back("URI:muster:node:0");
  const net::Credential revoked = authority.issue(of_node);
  authority.revoke(revoked);
  const Certified good(authority, ProcessFiles{});
  const Certified bad(authority, revoked);
  Job job(1);
  Child scheduler = job.scheduler(good.variables());
  Child thief = job.worker("0", bad.variables());
  expect_refused(thief, "refused this process's certificate: it was revoked");
  EXPECT_TRUE(scheduler.printed("certificate revoked (CN=client)")) << scheduler.output();
  EXPECT_TRUE(scheduler.printed("absent: rank 0 (MS_NODE_ID=0), refused ")) << scheduler.output();
  EXPECT_THAT(scheduler.output(), Not(HasSubstr("rejected peer")));
  Child worker = job.worker("0", good.variables());
  expect_ends_well(scheduler, {&worker});
}

TEST(SecuredCluster, RefusesAWorkerThatSaysItIsAnother) {
  const Authority authority("Job authority");
  ProcessFiles files;
  files.server.alternative_names.push_back("URI:muster:node:scheduler");
  files.client.alternative_names.push_back("URI:muster:node:3");
  const Certified certified(authority, files);
  Job job(1);
  Child scheduler = job.scheduler(certified.variables());
  Child thief = job.worker("0", certified.variables());
  expect_refused(thief, "was made for node 3, not for node 0");
  Child worker = job.worker("3", certified.variables());
  expect_ends_well(scheduler, {&worker});
}

TEST(SecuredCluster, RefusesAWorkersCertificateWhereASchedulerShouldBe) {
  const Authority authority("Job authority");
  ProcessFiles files;
  files.server.alternative_names.push_back("URI:muster:node:3");
  const Certified certified(authority, files);
  Job job(1);
  Child scheduler = job.scheduler(certified.variables());
  Child worker = job.worker("3", certified.variables());
  expect_refused(worker, "was made for node 3, not for node scheduler");
}

TEST(SecuredCluster, CutsOffAWorkerThatIsRevokedWhileItWorks) {
  Authority authority("Job authority");
  const net::Credential client = authority.issue(ProcessFiles().client);
  const Certified good(authority, ProcessFiles{});
  const Certified doomed(authority, client);
  Job job(2);
  Child scheduler = job.scheduler(good.variables());
  Child honest = job.worker("0", good.variables());
  Child other = job.worker("1", doomed.variables());
  ASSERT_TRUE(honest.printed("rank 0")) << honest.output();
  authority.revoke(client);
  good.read_again(authority);
  EXPECT_TRUE(scheduler.printed("is no longer good: certificate revoked (CN=client)", 4s))
      << scheduler.output();
  EXPECT_THAT(honest.ended_within(soon), Optional(cluster::exit_code_peer_lost)) << honest.output();
  EXPECT_THAT(honest.output(), HasSubstr("worker 1 (node '1'"));
  EXPECT_THAT(scheduler.ended_within(soon), Optional(cluster::exit_code_peer_lost)) << scheduler.output();
  EXPECT_THAT(other.ended_within(soon), ::testing::Not(Optional(0))) << other.output();
}

TEST(SecuredCluster, TellsBothSidesWhenOnlyOneUsesTls) {
  const Folder folder;
  Job job(1);
  Child scheduler = job.scheduler(with_token(folder, token));
  Child plain = job.worker("0");
  expect_refused(plain, "the scheduler refused this process: it does not use TLS, and this job does");
  EXPECT_TRUE(scheduler.printed("does not use TLS, and the scheduler does")) << scheduler.output();
  Job open_job(1);
  Child open_scheduler = open_job.scheduler();
  Child careful = open_job.worker("0", with_token(folder, token));
  expect_refused(careful, "does not speak TLS 1.2 or 1.3, and this process does");
  EXPECT_TRUE(open_scheduler.printed("uses TLS, and the scheduler does not")) << open_scheduler.output();
}

std::shared_ptr<const net::Security> security_of(const Variables& variables) {
  return cluster::open_security(
             cluster::read_security_settings(FixedEnvironment({variables.begin(), variables.end()})), false)
      .value();
}

// What any process may ask that is no part of the job.
std::vector<cluster::MessageBody> questions() {
  using namespace cluster::message;
  return {StatusRequest{}, Echo{.filling = "01"}, MeetDoctors{{"alpha", "127.0.0.1", 1}}};
}

// Whoever has proven nothing learns neither which job it is nor who is in it: no question of it is read.
TEST(SecuredCluster, TellsNobodyOutsideWhichJobItIs) {
  const Authority authority("Job authority");
  const Authority other_authority("Another authority");
  const Certified certified(authority, ProcessFiles{});
  const Certified foreign(other_authority, ProcessFiles{});
  const Folder folder;
  const Variables another_token = with_token(folder, "another one, long enough");
  for (const Variables& ours : {with_token(folder, token), certified.variables()}) {
    Job job(1);
    Child scheduler = job.scheduler(ours);
    Child worker = job.worker("0", ours);
    ASSERT_TRUE(worker.printed("rank 0")) << worker.output();
    for (const auto& theirs : {std::shared_ptr<const net::Security>(), security_of(another_token),
                               security_of(foreign.variables())}) {
      for (const cluster::MessageBody& question : questions()) {
        UnauthorizedPeer unauthorized(job.port(), theirs);
        unauthorized.say({0, 0, question});
        const auto heard = unauthorized.hear();
        if (!heard) continue;  // TLS was refused
        ASSERT_TRUE(std::holds_alternative<cluster::message::Refuse>(heard->body));
        EXPECT_EQ(heard->job_id, 0u);
        EXPECT_EQ(heard->epoch, 0u);
        EXPECT_THAT(std::get<cluster::message::Refuse>(heard->body).failure.message,
                    Mentions("refused", "not use TLS"));
      }
    }
    UnauthorizedPeer one_of_us(job.port(), security_of(ours));
    one_of_us.say({0, 0, cluster::message::StatusRequest{}});
    const auto heard = one_of_us.hear();
    ASSERT_TRUE(heard);
    EXPECT_NE(heard->job_id, 0u);
    EXPECT_EQ(heard->epoch, 1u);
    EXPECT_EQ(std::get<cluster::message::Status>(heard->body).nodes.size(), 1u);
    expect_ends_well(scheduler, {&worker});
  }
}

TEST(SecuredCluster, RefusesAnotherToken) {
  const Folder folder;
  Job job(1);
  Child scheduler = job.scheduler(with_token(folder, token));
  Child unauthorized = job.worker("0", with_token(folder, "another one, long enough"));
  expect_refused(unauthorized, "refused this process's token");
  EXPECT_TRUE(scheduler.printed("has another token")) << scheduler.output();
  Child worker = job.worker("0", with_token(folder, token));
  expect_ends_well(scheduler, {&worker});
}

}  // namespace
}  // namespace muster::process_test
