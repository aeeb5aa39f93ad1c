# A deploy that waits for its approval, without a task: hero submit examples/wait/deploy.py; hero job tell ID approved
import hero

came = hero.event
if came is None:
    print("built; who approves it?")
    hero.wait("approved", "3d")
if came.get("timeout"):
    hero.discard("nobody approved it within 3 days")
print(f"deployed, as {came['who']} approved: {came['data']}")
