#include "actors/server/http_client.hpp"

#include "tests/support/fake_server.hpp"

#include <set>

namespace temper::test {
namespace {

using actors::HttpAnswer;
using actors::HttpClient;

class HttpClientTest : public testing::Test {
 protected:
  Result<actors::Url> url() const { return actors::parse_url(fake_.address()); }
  static actors::HttpRequest health() { return {"GET", "/health", {}, std::chrono::seconds(10)}; }

  FakeServer fake_{actors::EngineKind::Vllm};
  HttpClient client_{url().value(), 50};
};

TEST_F(HttpClientTest, AnswersEachRequestOnceThoughMoreAreSentThanThereAreConnections) {
  std::set<HttpClient::Ticket> sent, answered;
  for (int i = 0; i < 500; ++i)
    sent.insert(client_.send(health()));
  while (answered.size() < sent.size()) {
    const auto arrived = client_.take(std::chrono::seconds(10));
    ASSERT_FALSE(arrived.empty());
    for (const auto& [ticket, answer] : arrived) {
      EXPECT_EQ(answer.status, 200);
      EXPECT_TRUE(answered.insert(ticket).second);
    }
  }
  EXPECT_EQ(sent, answered);
}

TEST_F(HttpClientTest, GivesTheStatusAndBodyOfARefusal) {
  const HttpAnswer answer = client_.call({"GET", "/nowhere", {}, std::chrono::seconds(10)});
  EXPECT_EQ(answer.status, 404);
  EXPECT_NE(answer.body.find("Not Found"), std::string::npos);
  EXPECT_FALSE(answer.good());
}

TEST_F(HttpClientTest, SaysWhyThereIsNoAnswer) {
  const auto port = fake_.port();
  fake_.kill();
  const HttpAnswer answer = client_.call(health());
  EXPECT_EQ(answer.status, 0);
  EXPECT_NE(answer.failure.find(std::to_string(port)), std::string::npos);
  EXPECT_NE(answer.failure.find("/health"), std::string::npos);
}

TEST_F(HttpClientTest, GoesOnWithAServerThatWasStartedAgainMeanwhile) {
  ASSERT_TRUE(client_.call(health()).good());
  fake_.kill();
  fake_.start_again();
  // The kept connection is closed; the request goes out once more on a new one.
  EXPECT_TRUE(client_.call(health()).good());
}

TEST_F(HttpClientTest, GivesUpAtTheDeadline) {
  fake_.tell(R"({"faults": {"hangs": -1}})");
  const HttpAnswer answer =
      client_.call({"POST",
                    "/inference/v1/generate",
                    R"({"token_ids": [3], "sampling_params": {"max_tokens": 1}})",
                    std::chrono::milliseconds(50)});
  EXPECT_EQ(answer.status, 0);
  EXPECT_NE(answer.failure.find("deadline"), std::string::npos);
}

TEST_F(HttpClientTest, ForgetsWhatIsDroppedAndServesWhatComesAfter) {
  fake_.tell(R"({"faults": {"hangs": -1}})");
  const actors::HttpRequest hanging{"POST",
                                    "/inference/v1/generate",
                                    R"({"token_ids": [3], "sampling_params": {"max_tokens": 1}})",
                                    std::chrono::seconds(60)};
  for (int i = 0; i < 60; ++i)
    client_.send(hanging);
  client_.drop_all();
  const auto ticket = client_.send(health());
  const auto arrived = client_.take(std::chrono::seconds(10));
  ASSERT_EQ(arrived.size(), 1U);
  EXPECT_EQ(arrived[0].ticket, ticket);
}

}  // namespace
}  // namespace temper::test
