"""How each learner is driven; a module is imported only in the environment that has its learner."""
