// Which requests of a browser may change something in a job.
#include "muster/launch/dashboard/page_actions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/base/mentions.h"

namespace muster::launch {
namespace {
namespace page_actions_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class PageActionsTest : public ::testing::Test {
 protected:
  static HttpRequest post(const std::string& what, const std::string& given) {
    return *parse_request("POST /act?do=" + what + " HTTP/1.1\r\nX-Muster-Token: " + given + "\r\n\r\n");
  }
  PageActions::Checked check(const HttpRequest& request) {
    clock.advance(1s);
    return actions.check(request, clock.now());
  }
  int status_of(const HttpRequest& request) { return check(request).refused.status; }

  ManualClock clock;
  const std::string token = *new_page_token();
  PageActions actions{{.token = token, .reaches_workers = true, .restarts = true, .worker_num = 4}};
};

TEST_F(PageActionsTest, AreTakenFromWhoHasTheToken) {
  EXPECT_EQ(check(post("save", token)).action, (PageAction{PageAction::Kind::save}));
  EXPECT_EQ(check(post("stop", token)).action, (PageAction{PageAction::Kind::stop}));
  EXPECT_EQ(check(post("restart&rank=3", token)).action, (PageAction{PageAction::Kind::restart, 3}));
}

TEST_F(PageActionsTest, AreRefusedWithoutTheTokenOrWithAnotherOne) {
  EXPECT_EQ(status_of(*parse_request("POST /act?do=save HTTP/1.1\r\n\r\n")), 401);
  EXPECT_EQ(status_of(*parse_request("POST /act?do=save&token=" + token + " HTTP/1.1\r\n\r\n")), 401)
      << "an address is kept in many places";
  EXPECT_EQ(status_of(*parse_request("POST /act?do=save HTTP/1.1\r\nCookie: token=" + token + "\r\n\r\n")),
            401);
  EXPECT_EQ(status_of(post("save", token.substr(1))), 403);
  EXPECT_EQ(status_of(post("save", token + "0")), 403);
  std::string last_differs = token;
  last_differs.back() = last_differs.back() == '0' ? '1' : '0';
  EXPECT_EQ(status_of(post("save", last_differs)), 403);
  EXPECT_EQ(status_of(post("save", *new_page_token())), 403);
  EXPECT_FALSE(check(post("save", last_differs)).action);
}

TEST_F(PageActionsTest, AreRefusedWhereTheyAreNoneOrByAnotherMethod) {
  EXPECT_EQ(status_of(post("format", token)), 400);
  EXPECT_EQ(status_of(post("", token)), 400);
  EXPECT_EQ(status_of(post("restart", token)), 400);
  EXPECT_EQ(status_of(post("restart&rank=4", token)), 400);
  EXPECT_EQ(status_of(post("restart&rank=-1", token)), 400);
  EXPECT_EQ(status_of(post("restart&rank=1x", token)), 400);
  EXPECT_EQ(status_of(*parse_request("GET /act?do=save HTTP/1.1\r\nX-Muster-Token: " + token + "\r\n\r\n")),
            405);
}

TEST_F(PageActionsTest, AreRefusedWhereTheJobCannotDoThem) {
  actions = PageActions({.token = token, .reaches_workers = false, .restarts = false, .worker_num = 4});
  EXPECT_THAT(check(post("restart&rank=1", token)).refused.body, HasSubstr("--max-restarts"));
  EXPECT_THAT(check(post("save", token)).refused.body, HasSubstr("several launchers"));
  actions = PageActions({.why_not = "not over a network"});
  EXPECT_EQ(status_of(post("save", "")), 403) << "no token is none that an empty one equals";
  EXPECT_THAT(check(post("save", "")).refused.body, HasSubstr("not over a network"));
}

TEST_F(PageActionsTest, AreRefusedWhereTheyComeTooFast) {
  EXPECT_TRUE(check(post("save", token)).action);
  EXPECT_EQ(actions.check(post("save", token), clock.now()).refused.status, 429);
  EXPECT_TRUE(check(post("save", token)).action);
}

TEST_F(PageActionsTest, HaveTokensThatDiffer) {
  EXPECT_THAT(token, MatchesRegex("[0-9a-f]{32}"));
  EXPECT_NE(token, *new_page_token());
  EXPECT_TRUE(are_equal_secrets("abc", "abc"));
  EXPECT_FALSE(are_equal_secrets("abc", "abd"));
  EXPECT_FALSE(are_equal_secrets("abc", "ab"));
}

}  // namespace page_actions_test
}  // namespace
}  // namespace muster::launch
