"""An adapter for each family of learners; a module is imported only in the environment that has its learner."""
