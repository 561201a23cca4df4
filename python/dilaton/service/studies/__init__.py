"""Many runs of one lab: to compare, to scale down, to prove that results do not depend on the machine."""
