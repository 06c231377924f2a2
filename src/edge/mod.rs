use worker::*;

#[event(fetch)]
async fn fetch(req: Request, env: Env, _ctx: Context) -> Result<Response> {
    let ns = env.durable_object("SESSION_AGENT")?;
    let stub = ns.id_from_name("x")?.get_stub()?;
    stub.fetch_with_request(req).await
}

#[durable_object]
pub struct SessionAgent {
    state: State,
}

impl DurableObject for SessionAgent {
    fn new(state: State, _env: Env) -> Self {
        Self { state }
    }
    async fn fetch(&self, _req: Request) -> Result<Response> {
        let size = self.state.storage().sql().database_size();
        Response::ok(format!("{size}"))
    }
}
