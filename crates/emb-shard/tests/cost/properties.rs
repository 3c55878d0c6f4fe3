//! What must hold of the cost of any plan.
