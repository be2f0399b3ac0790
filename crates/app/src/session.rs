//! Sessions (api 2.2).

use nylorun_domain::caller::Caller;
use nylorun_domain::change::{EffectRow, SessionChange};
use nylorun_domain::check::{Path, ProblemCode, Problems};
use nylorun_domain::id::{SessionId, is_addressable};
use nylorun_domain::json::{Json, Value};
use nylorun_domain::manifest::{AgentManifest, pin_skills, pin_workspace, sandbox_json};
use nylorun_domain::sandbox::{SandboxConfig, SandboxDefault, SandboxRequest};
use nylorun_domain::session::{SandboxSource, Session, Status};
use nylorun_domain::tool::SkillTool;
use nylorun_domain::turn::Refusal;
use nylorun_domain::workspace::WorkspaceSpec;
use nylorun_store::{AgentRow, NO_WORKSPACE_OWNER, WriteError};
use nylorun_turns::{Updated, now};
use nylorun_wire::checkpoint::pending_to_value;
use nylorun_wire::code::Code;
use nylorun_wire::session::{OpenSession, PinnedManifest, SandboxChoice, SessionView, UncertainEffect};

use crate::sandbox::check_placement;
use crate::{App, Error};

/// A session that is to be opened.
struct NewSession {
    session: Session,
    /// Its own copy of the definition.
    pinned: AgentManifest,
    /// The session whose workspace it shares, as it was read.
    sandbox_owner: Option<Session>,
}

/// The workspace of a session that is to be opened.
struct Workspace {
    spec: WorkspaceSpec,
    source: SandboxSource,
    /// The session that owns it, when it is another one.
    owner: Option<Session>,
}

impl App {
    /// Opens a session, or attaches vaults to one that was opened with the same body.
    pub async fn session_open(&self, caller: &Caller, id: SessionId, body: OpenSession) -> Result<SessionView, Error> {
        if caller.person().is_some() && body.info.is_some() {
            return Err(Error::scope_required("info"));
        }
        if !caller.sees_owner(&body.owner_user_id) {
            return Err(Error::forbidden("ownerUserId must be the subject that you act for"));
        }
        self.resets().refuse_work()?;
        loop {
            if let Some(session) = self.store().session_get(&id).await? {
                return self.session_reopen(caller, session, &body).await;
            }
            let NewSession { session, pinned, sandbox_owner } = self.new_session(caller, &id, &body).await?;
            match self.store().session_insert(&session, &pinned, sandbox_owner.as_ref()).await {
                Ok(()) => return self.view(caller, session).await,
                // Somebody opened it meanwhile, or removed whose sandbox it shares: look at what is there.
                Err(WriteError::Duplicate { .. } | WriteError::Guard(NO_WORKSPACE_OWNER)) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The session view.
    pub async fn session_view(&self, caller: &Caller, id: &SessionId) -> Result<SessionView, Error> {
        self.view(caller, self.session(caller, id).await?).await
    }

    /// The manifest that the session pinned.
    pub async fn session_manifest(&self, caller: &Caller, id: &SessionId) -> Result<PinnedManifest, Error> {
        let session = self.session(caller, id).await?;
        let manifest = self.store().manifest_get(&session.manifest_hash).await?;
        let manifest = manifest.ok_or_else(|| Error::Internal {
            message: format!("session {id} pins manifest {}, which is not stored", session.manifest_hash),
        })?;
        Ok(PinnedManifest {
            session_id: session.id,
            agent_id: session.agent_id,
            manifest_hash: session.manifest_hash,
            implementation_version: session.implementation_version,
            manifest,
        })
    }

    /// The session, when it is there for this caller. Another owner's is missing.
    pub(crate) async fn session(&self, caller: &Caller, id: &SessionId) -> Result<Session, Error> {
        let session = self.store().session_get(id).await?;
        session.filter(|session| sees(caller, session)).ok_or_else(Error::session_not_found)
    }

    /// The definition that the session was opened with.
    pub(crate) async fn definition(&self, session: &Session) -> Result<AgentManifest, Error> {
        let document = self.store().manifest_get(&session.definition_hash).await?;
        let missing = || Error::Internal { message: format!("definition {} is not stored", session.definition_hash) };
        AgentManifest::read_pinned(&document.ok_or_else(missing)?)
            .map_err(|problems| Error::Internal { message: problems.to_string() })
    }

    async fn session_reopen(
        &self,
        caller: &Caller,
        session: Session,
        body: &OpenSession,
    ) -> Result<SessionView, Error> {
        if !caller.sees_agent(&session.agent_id) {
            return Err(Error::session_not_found());
        }
        if session.owner_user_id != body.owner_user_id {
            return Err(match caller.only_owner() {
                Some(_) => Error::session_not_found(),
                None => Error::conflict(format!("session {} belongs to another owner", session.id)),
            });
        }
        if session.identity_hash != body.identity {
            return Err(Error::conflict(format!(
                "session {} was opened with another body; open a new session under another id",
                session.id
            )));
        }
        refuse_vaults(body)?;
        let updated = self.committer().update(&session.id, |current| {
            if body.vault_ids.is_none() && body.credential_selections.is_none() {
                return Ok::<_, Error>(None);
            }
            let mut change = SessionChange::of(current);
            change.session.vault_ids = Json::from_trusted("[]");
            change.session.credential_selections = Json::from_trusted("[]");
            Ok(Some(change))
        });
        match updated.await? {
            Updated::Committed(change) => self.view(caller, change.session).await,
            Updated::Unchanged(session) => self.view(caller, *session).await,
            Updated::Missing => Err(Error::session_not_found()),
            Updated::Refused(error) => Err(error),
        }
    }

    async fn new_session(&self, caller: &Caller, id: &SessionId, body: &OpenSession) -> Result<NewSession, Error> {
        if !is_addressable(id.as_str()) {
            return Err(Error::unaddressable("id", id.as_str()));
        }
        let agent = self.store().agent_get(&body.agent_id).await?.filter(|agent| caller.sees_agent(&agent.id));
        let agent = agent.ok_or_else(|| Error::not_found("Definition not found"))?;
        refuse_vaults(body)?;
        let config = self.sandbox_config().await?;
        let chosen = self.choose_workspace(caller, body, &config).await?;
        check_placement(&config)?;
        let pinned = pin(&agent, chosen.as_ref().map(|chosen| &chosen.spec))?;
        let sandbox_source = chosen.as_ref().map(|chosen| chosen.source);
        let (workspace, sandbox_owner) = chosen.map(|chosen| (chosen.spec, chosen.owner)).unzip();
        let sandbox_owner = sandbox_owner.flatten();
        let session = Session {
            id: id.clone(),
            agent_id: agent.id,
            owner_user_id: body.owner_user_id.clone(),
            definition_hash: agent.manifest_hash,
            manifest_hash: pinned.hash.clone(),
            implementation_version: agent.implementation_version,
            identity_hash: body.identity.clone(),
            info: body.info.clone(),
            vault_ids: Json::from_trusted("[]"),
            credential_selections: Json::from_trusted("[]"),
            workspace,
            sandbox_source,
            sandbox_owner: sandbox_owner.as_ref().map(|owner| owner.id.clone()),
            created_at: now(),
            status: Status::Idle,
            active_turn_id: None,
            last_turn_id: None,
            segment: 0,
            input_seq: None,
            turn_manifest_hash: None,
            history_from: 0,
            history_snapshot: None,
            epoch: 0,
            owner: None,
            head: 0,
            rev: 0,
            last_event_at: None,
            error: None,
            queued: 0,
            steers: 0,
            sharers: 0,
        };
        Ok(NewSession { session, pinned, sandbox_owner })
    }

    async fn choose_workspace(
        &self,
        caller: &Caller,
        body: &OpenSession,
        config: &SandboxConfig,
    ) -> Result<Option<Workspace>, Error> {
        let path = Path::ROOT.name("sandbox");
        let (request, source) = match &body.sandbox {
            SandboxChoice::None => return Ok(None),
            SandboxChoice::Default => match &config.default {
                SandboxDefault::None => return Ok(None),
                SandboxDefault::Inline(request) => (request.clone(), SandboxSource::Default),
            },
            SandboxChoice::Inline { image, network_allow, cpus, memory_mib } => {
                if caller.only_owner().is_some() {
                    return Err(Error::forbidden(
                        "only the application itself may describe a sandbox inline; leave sandbox out, or name one",
                    ));
                }
                let request = SandboxRequest {
                    image: image.clone(),
                    network_allow: network_allow.clone(),
                    cpus: *cpus,
                    memory_mib: *memory_mib,
                };
                (request, SandboxSource::Inline)
            }
            SandboxChoice::Environment(id) => {
                return Err(Error::not_found(format!("Sandbox {id} not found")));
            }
            SandboxChoice::Session(session) => return self.share_workspace(caller, body, session).await.map(Some),
        };
        let spec = config.resolve(&request, &path).map_err(Error::Invalid)?;
        Ok(Some(Workspace { spec, source, owner: None }))
    }

    /// The workspace of another session of the same person (sandbox-and-definitions a7). Who shares with one that
    /// shares itself shares with the one that owns the workspace.
    async fn share_workspace(&self, caller: &Caller, body: &OpenSession, id: &SessionId) -> Result<Workspace, Error> {
        let missing = || {
            Error::not_found(format!(
                "sandbox.session: session {id} not found; name a session that is there and has the same ownerUserId"
            ))
        };
        let session = self.store().session_get(id).await?.filter(|session| sees(caller, session));
        let session = session.ok_or_else(missing)?;
        if session.owner_user_id != body.owner_user_id {
            return Err(Error::forbidden(format!(
                "session {id} belongs to another owner: a sandbox is shared by sessions of one ownerUserId"
            )));
        }
        let Some(spec) = session.workspace.clone() else {
            let message = format!("session {id} has no sandbox: name one that has, or describe one");
            let sandbox = Path::ROOT.name("sandbox");
            return Err(Error::Invalid(Problems::one(ProblemCode::Custom, &sandbox.name("session"), message)));
        };
        let owner = match &session.sandbox_owner {
            Some(owner) => self.store().session_get(owner).await?.ok_or_else(Error::session_not_found)?,
            None => session,
        };
        Ok(Workspace { spec, source: SandboxSource::Shared, owner: Some(owner) })
    }

    /// Another session whose turn has the workspace that this one uses.
    pub(crate) async fn workspace_holder(&self, session: &Session) -> Result<Option<SessionId>, Error> {
        if !session.shares_workspace() {
            return Ok(None);
        }
        Ok(self.store().workspace_holder(session).await?)
    }

    /// A refusal as this caller may be told it: another session is named only where the caller may see it.
    pub(crate) async fn told(&self, caller: &Caller, refusal: Refusal) -> Error {
        let Refusal::WorkspaceHeld { by: Some(holder) } = &refusal else { return refusal.into() };
        match self.store().session_get(holder).await {
            Ok(Some(session)) if sees(caller, &session) => refusal.into(),
            // It is gone, hidden, or nobody can tell.
            Ok(_) | Err(_) => Refusal::WorkspaceHeld { by: None }.into(),
        }
    }

    /// The session whose workspace this one shares, where the caller may see that one. Both belong to one person, so
    /// that only a token for some agents hides it.
    async fn sandbox_owner_id(&self, caller: &Caller, session: &Session) -> Result<Option<SessionId>, Error> {
        let Some(owner) = &session.sandbox_owner else { return Ok(None) };
        if caller.person().is_none() {
            return Ok(Some(owner.clone()));
        }
        let owner = self.store().session_get(owner).await?.filter(|owner| sees(caller, owner));
        Ok(owner.map(|owner| owner.id))
    }

    pub(crate) async fn view(&self, caller: &Caller, session: Session) -> Result<SessionView, Error> {
        let sandbox_owner_id = self.sandbox_owner_id(caller, &session).await?;
        let uncertain = self.store().effect_uncertain(&session.id).await?;
        let waits = self.waits(&session).await?;
        let queue = self.queued(&session).await?;
        Ok(SessionView {
            definition_hash: (session.definition_hash != session.manifest_hash).then_some(session.definition_hash),
            id: session.id,
            agent_id: session.agent_id,
            owner_user_id: session.owner_user_id,
            manifest_hash: session.manifest_hash,
            implementation_version: session.implementation_version,
            status: session.status.as_str().to_owned(),
            active_turn_id: session.active_turn_id,
            vault_ids: Vec::new(),
            credential_selections: Vec::new(),
            sandbox_owner_id,
            sandbox_id: None,
            sandbox: session.workspace.as_ref().map(|spec| sandbox_json(spec).to_json()),
            sandbox_source: session.sandbox_source.map(|source| source.as_str().to_owned()),
            mcp_snapshot: None,
            mcp_diagnostics: Vec::new(),
            waits,
            error: session.error,
            uncertain_effects: uncertain.into_iter().map(uncertain_effect).collect(),
            queue,
        })
    }
}

impl App {
    /// The open questions of the session's turn; `None` when nothing is asked.
    async fn waits(&self, session: &Session) -> Result<Option<Json>, Error> {
        // Without a turn, or in its first stretch, nothing was asked yet.
        if session.active_turn_id.is_none() || (session.segment == 0 && session.status != Status::Paused) {
            return Ok(None);
        }
        let checkpoint = self.store().checkpoint_get(&session.id).await?;
        let waits = checkpoint.into_iter().flat_map(|checkpoint| checkpoint.waits);
        let open: Vec<_> =
            waits.filter(|wait| wait.answer.is_none()).map(|wait| pending_to_value(&wait.interaction)).collect();
        Ok((!open.is_empty()).then(|| Value::Array(open).to_json()))
    }
}

/// Whether the session is there for this caller.
fn sees(caller: &Caller, session: &Session) -> bool {
    caller.sees_owner(&session.owner_user_id) && caller.sees_agent(&session.agent_id)
}

fn uncertain_effect(row: EffectRow) -> UncertainEffect {
    UncertainEffect { effect_id: row.id, turn_id: row.turn_id, kind: row.kind, error: row.error }
}

/// There are no vaults yet: one that is named is missing, and a credential that is chosen lies outside.
fn refuse_vaults(body: &OpenSession) -> Result<(), Error> {
    if let Some(vault) = body.vault_ids.iter().flatten().next() {
        return Err(Error::not_found(format!("Vault {vault} not found")));
    }
    match body.credential_selections.iter().flatten().next() {
        None => Ok(()),
        Some(selection) => Err(Error::BadRequest {
            code: Code::RequestRejected,
            message: format!("credential {} is in none of the session's vaults", selection.credential_id),
        }),
    }
}

/// The session's own copy of the definition: what the runtime adds is added to it, never to what was saved.
pub(crate) fn pin(agent: &AgentRow, workspace: Option<&WorkspaceSpec>) -> Result<AgentManifest, Error> {
    let saved = AgentManifest::read_pinned(&agent.manifest)
        .map_err(|problems| Error::Internal { message: format!("agent {}: {problems}", agent.id) })?;
    pin_manifest(saved.clone(), &saved, workspace)
}

/// The copy of `manifest`, which is `saved` or a variant of it. A definition that declares skill tools itself decides
/// which there are, so that a variant may leave them out.
pub(crate) fn pin_manifest(
    manifest: AgentManifest,
    saved: &AgentManifest,
    workspace: Option<&WorkspaceSpec>,
) -> Result<AgentManifest, Error> {
    let declares_them = SkillTool::ALL.iter().any(|tool| saved.tool(tool.as_str()).is_some());
    let manifest = if declares_them { manifest } else { pin_skills(manifest).map_err(Error::Invalid)? };
    match workspace {
        None => Ok(manifest),
        Some(spec) => pin_workspace(&manifest, spec).map_err(Error::Invalid),
    }
}
