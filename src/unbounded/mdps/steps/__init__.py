"""Steps that several learners for MDPs share."""
