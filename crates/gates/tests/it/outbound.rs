//! The guarded client on real connections.

use bytes::Bytes;
use nylorun_gates::outbound::{Outbound, OutboundError, OutboundRequest, PrivateTargets, Refusal, credential};
use nylorun_testkit::provider::{ProviderStub, Reply};
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderMap};

use crate::support::CANARY;

fn request(url: &str) -> OutboundRequest {
    let headers = HeaderMap::from_iter([(AUTHORIZATION, credential(CANARY).unwrap())]);
    let url = url.parse().unwrap();
    OutboundRequest { method: Method::POST, url, headers, body: Bytes::new(), max_answer: 8 }
}

async fn status(policy: PrivateTargets, url: &str) -> Result<u16, OutboundError> {
    Outbound::new(policy).send(request(url)).await.map(|answer| answer.status())
}

fn refused(host: &str) -> Result<u16, OutboundError> {
    Err(OutboundError::Refused(Refusal::Address { host: host.into() }))
}

#[tokio::test]
async fn a_name_is_checked_where_it_is_resolved() {
    let stub = ProviderStub::start().await.unwrap();
    stub.always(|_| Reply::status(200, "ok"));
    let url = stub.base_url();
    let by_name = url.replace("127.0.0.1", "localhost");
    assert_eq!(status(PrivateTargets::Allow, &by_name).await, Ok(200));
    assert_eq!(status(PrivateTargets::Allow, &url).await, Ok(200));
    assert_eq!(status(PrivateTargets::Refuse, &by_name).await, refused("localhost"));
    assert_eq!(status(PrivateTargets::Refuse, &url).await, refused("127.0.0.1"));
    assert_eq!(stub.count(), 2);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let stub = ProviderStub::start().await.unwrap();
    let elsewhere = stub.base_url();
    stub.then(Reply::status(307, "").header("location", &elsewhere));
    assert_eq!(status(PrivateTargets::Allow, &elsewhere).await, Err(OutboundError::Redirect(307)));
    assert_eq!(stub.count(), 1);
}

#[tokio::test]
async fn an_answer_is_read_up_to_its_bound() {
    let stub = ProviderStub::start().await.unwrap();
    stub.then(Reply::status(200, "12345678")).then(Reply::status(200, "123456789"));
    let client = Outbound::new(PrivateTargets::Allow);
    let mut answer = client.send(request(&stub.base_url())).await.unwrap();
    assert_eq!(answer.chunk().await, Ok(Some(Bytes::from("12345678"))));
    assert_eq!(answer.chunk().await, Ok(None));
    let mut answer = client.send(request(&stub.base_url())).await.unwrap();
    assert_eq!(answer.chunk().await, Err(OutboundError::TooLarge(8)));
}

#[tokio::test]
async fn neither_debug_nor_errors_show_a_credential() {
    let shown = format!("{:?}", request("http://127.0.0.1:1/"));
    assert!(shown.contains("Sensitive") && !shown.contains("canary"), "{shown}");
    let error =
        Outbound::new(PrivateTargets::Allow).send(request("http://127.0.0.1:1/?key=sk-canary")).await.unwrap_err();
    let problem = "Connection refused (os error 111)".to_owned();
    assert_eq!(error, OutboundError::NotSent { host: "127.0.0.1:1".to_owned(), problem });
}
