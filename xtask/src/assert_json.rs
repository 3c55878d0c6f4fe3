//! Checks values that a program printed as JSON.

use crate::Failure;
use serde_json::Value;
use std::path::Path;

/// Whether a value found satisfies its bound.
type Compare = fn(f64, f64) -> bool;

/// Longer operators first, so that `>=` is not read as `>`.
const OPERATORS: [(&str, Compare); 5] = [
    (">=", |found, bound| found >= bound),
    ("<=", |found, bound| found <= bound),
    (">", |found, bound| found > bound),
    ("<", |found, bound| found < bound),
    ("=", |found, bound| found == bound),
];

/// Checks every claim against the last JSON object of a file and prints the values found.
pub(crate) fn run(file: &Path, claims: &[String]) -> Result<(), Failure> {
    let text =
        std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let object = last_object(&text)
        .ok_or_else(|| format!("{}: no line is a JSON object", file.display()))?;
    for claim in claims {
        let value = holds(&object, claim)?;
        eprintln!("{claim}: {value}");
    }
    Ok(())
}

/// The whole text if it is one object, else the last line that is.
fn last_object(text: &str) -> Option<Value> {
    let object = |text| serde_json::from_str(text).ok().filter(Value::is_object);
    object(text).or_else(|| text.lines().rev().find_map(object))
}

/// The value that makes `path operator number` true.
fn holds(object: &Value, claim: &str) -> Result<f64, Failure> {
    let (path, bound, compare) = OPERATORS
        .iter()
        .find_map(|(operator, compare)| {
            claim.split_once(operator).map(|(path, bound)| (path.trim(), bound.trim(), compare))
        })
        .ok_or_else(|| format!("{claim:?} is not `path operator number`"))?;
    let bound: f64 = bound.parse().map_err(|error| format!("{claim:?}: {bound:?}: {error}"))?;
    let found = path.split('.').try_fold(object, |value, key| value.get(key));
    let found = found.ok_or_else(|| format!("{claim}: the object has no {path}: {object}"))?;
    let value = found.as_f64().ok_or_else(|| format!("{claim}: {path} is {found}"))?;
    if compare(value, bound) {
        return Ok(value);
    }
    Err(format!("{claim}: {path} is {value}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_object_counts() {
        let text = "starting\n{\"step\": 1}\n{\"step\": 2}\ndone\n";
        assert_eq!(last_object(text).expect("two objects")["step"], 2);
        let pretty = "{\n  \"step\": 3\n}\n";
        assert_eq!(last_object(pretty).expect("one object")["step"], 3);
        assert_eq!(last_object("7\nnothing\n"), None);
    }

    #[test]
    fn claims_that_hold_return_the_value() {
        let object = serde_json::json!({"auc": 0.75, "eval": {"rows": 33}});
        for claim in ["auc>0.7", "auc >= 0.75", "auc<0.8", "auc<=0.75", "eval.rows=33"] {
            assert!(holds(&object, claim).is_ok(), "{claim}");
        }
    }

    #[test]
    fn claims_that_do_not_hold_say_what_was_found() {
        let object = serde_json::json!({"auc": 0.5, "name": "x", "none": null});
        let refusal = |claim| holds(&object, claim).expect_err("must not hold").to_string();
        assert_eq!(refusal("auc>0.5"), "auc>0.5: auc is 0.5");
        assert_eq!(refusal("none>0"), "none>0: none is null");
        assert_eq!(refusal("name>0"), "name>0: name is \"x\"");
        assert!(refusal("auc.x>0").contains("the object has no auc.x"));
        assert!(refusal("auc").contains("is not `path operator number`"));
        assert!(refusal("auc>high").contains("\"high\""));
    }
}
