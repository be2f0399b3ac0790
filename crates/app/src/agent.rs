//! Agents (api 2.1).

use nylorun_domain::caller::Caller;
use nylorun_domain::check::{Path, ProblemCode, Problems, check_at};
use nylorun_domain::id::{AgentId, is_addressable};
use nylorun_domain::manifest::AgentManifest;
use nylorun_store::AgentRow;
use nylorun_turns::now;
use nylorun_wire::agent::{AgentListed, AgentSaved, SaveAgent};

use crate::{App, Error};

impl App {
    /// Saves an agent. Open sessions keep the definition that they pinned.
    pub async fn agent_save(&self, _caller: &Caller, id: AgentId, body: SaveAgent) -> Result<AgentSaved, Error> {
        if !is_addressable(id.as_str()) {
            return Err(Error::unaddressable("agentId", id.as_str()));
        }
        let path = Path::ROOT.name("manifest");
        let manifest = check_at(&body.manifest.value(), path, AgentManifest::saved).map_err(Error::Invalid)?;
        if manifest.id != id {
            let message = format!("the manifest's id is {}, and the path names {id}; make them equal", manifest.id);
            return Err(Error::Invalid(Problems::one(ProblemCode::Custom, &path.name("id"), message)));
        }
        self.require_files(&manifest).await?;
        let row = AgentRow {
            id,
            manifest_hash: manifest.hash.clone(),
            implementation_version: body.implementation_version,
            manifest: body.manifest,
        };
        self.store().agent_put(&row, now()).await?;
        Ok(AgentSaved {
            agent_id: row.id,
            manifest_hash: row.manifest_hash,
            implementation_version: row.implementation_version,
        })
    }

    /// The agents that are there for the caller, by id.
    pub async fn agent_list(&self, caller: &Caller) -> Result<Vec<AgentListed>, Error> {
        let agents = self.store().agent_list().await?;
        let listed = agents.into_iter().filter(|agent| caller.sees_agent(&agent.id)).map(|agent| AgentListed {
            agent_id: agent.id,
            manifest: agent.manifest,
            manifest_hash: agent.manifest_hash,
            implementation_version: agent.implementation_version,
        });
        Ok(listed.collect())
    }
}
