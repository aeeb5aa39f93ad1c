# A migration of many steps that goes on where it was, however often its actor dies:
# hero exec --retries 3 examples/state/migration.py
import hero

steps = int(hero.params.get("steps", 1000))
done = hero.state or {"step": 0, "attempts": 0}
done["attempts"] += 1
hero.log(f"goes on after step {done['step']}")
while done["step"] < steps:
    # Here a step does its work. It may run twice: its state is kept only after it.
    done["step"] += 1
    hero.checkpoint(done)
    hero.progress(done["step"] / steps, f"step {done['step']} of {steps}")
hero.output(done)
