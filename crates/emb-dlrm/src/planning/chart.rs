//! Scaling as a picture: [`scaling_chart`].

use super::{Replicas, Simulation};
use plotters::prelude::{
    BLACK, ChartBuilder, Circle, Color as _, DrawingAreaErrorKind, IntoDrawingArea as _,
    IntoLogRange as _, LineSeries, PathElement, RGBColor, SVGBackend, SeriesLabelPosition,
    ShapeStyle, WHITE,
};
use std::error::Error as StdError;

const SIZE: (u32, u32) = (900, 600);
const IDEAL: RGBColor = RGBColor(150, 150, 150);
/// Colours that colour-blind people tell apart (Okabe and Ito, "Color universal design", 2008).
const COLORS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
];

/// The chart of a simulation as SVG text: scaling over ranks, a line for each number of replicas,
/// the ideal line beside them; both axes logarithmic.
///
/// # Errors
/// No point that fits; a chart that can't be drawn.
pub fn scaling_chart(simulation: &Simulation) -> crate::Result<String> {
    let fits: Vec<(u32, f64)> =
        simulation.points.iter().filter_map(|point| Some((point.gpus, point.scaling?))).collect();
    let Some(&first) = fits.first() else {
        return Err(crate::Error::Infeasible("no chart: no point fits".into()));
    };
    let mut text = String::new();
    draw(&mut text, simulation, &fits, first)
        .map_err(|error| crate::Error::Config(format!("--chart: {error}")))?;
    Ok(text)
}

type Drawn = Result<(), Box<dyn StdError>>;

fn draw(
    text: &mut String,
    simulation: &Simulation,
    fits: &[(u32, f64)],
    first: (u32, f64),
) -> Drawn {
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    area.fill(&WHITE).map_err(boxed)?;
    let ranks = || fits.iter().map(|(gpus, _)| f64::from(*gpus));
    let (least, most) = (ranks().fold(f64::INFINITY, f64::min), ranks().fold(0.0, f64::max));
    let ideal = |gpus: f64| first.1 * gpus / f64::from(first.0);
    let scalings = || fits.iter().map(|(_, scaling)| *scaling);
    let low = scalings().fold(ideal(least), f64::min) / 1.2;
    let high = scalings().fold(ideal(most), f64::max) * 1.2;
    let title = format!("{}, planned by {}", simulation.workload, simulation.planner);
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 22))
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(64)
        .build_cartesian_2d(
            (least / 1.1..most * 1.1).log_scale().base(2.0),
            (low..high).log_scale().base(2.0),
        )
        .map_err(boxed)?;
    let number = |value: &f64| {
        if *value >= 10.0 { format!("{value:.0}") } else { format!("{value:.2}") }
    };
    chart
        .configure_mesh()
        .x_desc("ranks")
        .y_desc("samples a second, relative to the first point")
        .x_label_formatter(&|value| format!("{value:.0}"))
        .y_label_formatter(&number)
        .label_style(("sans-serif", 14))
        .axis_desc_style(("sans-serif", 16))
        .draw()
        .map_err(boxed)?;
    let grey = ShapeStyle::from(&IDEAL).stroke_width(1);
    chart
        .draw_series(LineSeries::new([least, most].map(|gpus| (gpus, ideal(gpus))), grey))
        .map_err(boxed)?
        .label("ideal")
        .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], grey));
    for (number, line) in lines(simulation).into_iter().enumerate() {
        let color = COLORS[number % COLORS.len()];
        let points: Vec<(f64, f64)> = simulation
            .points
            .iter()
            .filter(|point| point.line == line)
            .filter_map(|point| Some((f64::from(point.gpus), point.scaling?)))
            .collect();
        // Thinner lines lie on thicker ones, so that equal lines are both seen.
        let style = color.stroke_width(5_u32.saturating_sub(number as u32).max(2));
        let name = match line {
            Replicas::Auto => "replicas as planned".to_owned(),
            Replicas::Exactly(1) => "1 replica".to_owned(),
            Replicas::Exactly(count) => format!("{count} replicas"),
        };
        chart
            .draw_series(LineSeries::new(points.clone(), style))
            .map_err(boxed)?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style));
        chart
            .draw_series(points.into_iter().map(|at| Circle::new(at, 3, color.filled())))
            .map_err(boxed)?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 14))
        .draw()
        .map_err(boxed)?;
    area.present().map_err(boxed)
}

/// The numbers of replicas, in the order of the points.
fn lines(simulation: &Simulation) -> Vec<Replicas> {
    let mut lines = Vec::new();
    for point in &simulation.points {
        if !lines.contains(&point.line) {
            lines.push(point.line);
        }
    }
    lines
}

fn boxed<E: StdError + Send + Sync + 'static>(error: DrawingAreaErrorKind<E>) -> Box<dyn StdError> {
    Box::new(error)
}
