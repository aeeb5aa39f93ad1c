//! Whether getting and finding an object of a script does not grow with the number of objects.

use std::time::{Duration, Instant};

use serde_json::json;

use super::measure::{Figures, millis, quantile};
use crate::cli::stage::{Stage, unavailable};
use crate::client::ClientError;
use crate::config::OsisConfig;
use crate::error::Error;
use crate::proto::object::{Ask, Change, Context, ObjectId, ObjectType, Query, Write};
use crate::store::Store;

const FEW: usize = 1000;
const MANY: usize = 1_000_000;
/// How often each is done; the figure is the median.
const TIMES: usize = 500;

/// Measures among few objects, fills up, and measures among many.
pub(super) async fn measure(stage: &mut Stage) -> Result<Figures, Error> {
    let place = Place::new(stage)?;
    let mut figures = Figures::new();
    for (from, to, get_name, find_name) in [
        (0, FEW, "object_get_of_few_ms", "object_find_of_few_ms"),
        (FEW, MANY, "object_get_of_many_ms", "object_find_of_many_ms"),
    ] {
        place.fill(from, to).await?;
        figures.insert(get_name, millis(place.get(to).await?));
        figures.insert(find_name, millis(place.find(to).await?));
        stage.check()?;
    }
    Ok(figures)
}

struct Place {
    store: Store,
    context: Context,
    config: OsisConfig,
    object_type: ObjectType,
}

impl Place {
    fn new(stage: &Stage) -> Result<Self, Error> {
        let store = Store::open(&stage.config.redis).map_err(|e| unavailable(e.to_string()))?;
        let named = |error: crate::proto::target::IllegalName| unavailable(error.to_string());
        let object_type: ObjectType = "person".parse().map_err(named)?;
        let fields = ["email", "age"].map(str::parse).into_iter().collect::<Result<_, _>>();
        let index = [(object_type.clone(), fields.map_err(named)?)].into();
        let objects_max = MANY as u64;
        let config = OsisConfig { objects_max, index, ..OsisConfig::default() };
        Ok(Self { store, context: Context::default(), config, object_type })
    }

    async fn ask(&self, ask: Ask) -> Result<(), Error> {
        let answer = self.store.objects(&self.context, ask, &self.config).await;
        answer.map(drop).map_err(|error| ClientError::from(error).into())
    }

    async fn fill(&self, from: usize, to: usize) -> Result<(), Error> {
        for first in (from..to).step_by(Store::OBJECT_CHANGES_MAX) {
            let numbers = first..to.min(first + Store::OBJECT_CHANGES_MAX);
            let writes: Vec<Write> = numbers.map(|n| self.write(n)).collect::<Result<_, _>>()?;
            self.ask(Ask::Write(writes)).await?;
        }
        Ok(())
    }

    fn write(&self, number: usize) -> Result<Write, Error> {
        let fields = json!({ "name": "somebody", "email": email(number), "age": number % 100 });
        let body = fields.as_object().cloned().unwrap_or_default();
        let change = Change::Set { body, created_ms: None };
        Ok(Write { object_type: self.object_type.clone(), id: id(number)?, expected: None, change })
    }

    async fn get(&self, objects: usize) -> Result<Duration, Error> {
        let mut times = Vec::with_capacity(TIMES);
        for _ in 0..TIMES {
            let id = id(fastrand::usize(..objects))?;
            let began = Instant::now();
            self.ask(Ask::Get(self.object_type.clone(), id)).await?;
            times.push(began.elapsed());
        }
        Ok(quantile(&mut times, 0.5))
    }

    async fn find(&self, objects: usize) -> Result<Duration, Error> {
        let mut times = Vec::with_capacity(TIMES);
        for _ in 0..TIMES {
            let text = format!("email = \"{}\"", email(fastrand::usize(..objects)));
            let began = Instant::now();
            let query = Query::parse(&text).map_err(|error| unavailable(error.to_string()))?;
            let object_type = self.object_type.clone();
            self.ask(Ask::Find { object_type, query, after: None, limit: 10 }).await?;
            times.push(began.elapsed());
        }
        Ok(quantile(&mut times, 0.5))
    }
}

fn id(number: usize) -> Result<ObjectId, Error> {
    format!("p{number}").parse().map_err(|error| unavailable(format!("{error}")))
}

fn email(number: usize) -> String {
    format!("p{number}@example.org")
}
