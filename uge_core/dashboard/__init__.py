"""The only names that pages may import, and the processes that work for pages.

    import uge_core.dashboard as ui

A page chooses, calls one of these, and draws. Each is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from uge_core.lazy import lazily

if TYPE_CHECKING:
    from uge_core.dashboard.jobs.comparison import comparing as comparing
    from uge_core.dashboard.jobs.comparison import enqueue_comparison as enqueue_comparison
    from uge_core.dashboard.jobs.measure import enqueue_measure as enqueue_measure
    from uge_core.dashboard.jobs.measure import measuring as measuring
    from uge_core.dashboard.jobs.projection import enqueue_projection as enqueue_projection
    from uge_core.dashboard.jobs.projection import projection_estimate as projection_estimate
    from uge_core.dashboard.jobs.projection import projection_graph as projection_graph
    from uge_core.dashboard.jobs.reading import enqueue_reading as enqueue_reading
    from uge_core.dashboard.lambda_offer import enqueue_lambda as enqueue_lambda
    from uge_core.dashboard.lambda_offer import lambda_offer as lambda_offer
    from uge_core.dashboard.queue import cancel as cancel
    from uge_core.dashboard.queue import delete as delete
    from uge_core.dashboard.queue import forget as forget
    from uge_core.dashboard.queue import history_view as history_view
    from uge_core.dashboard.queue import jobs_view as jobs_view
    from uge_core.dashboard.queue import keep_queue_going as keep_queue_going
    from uge_core.dashboard.queue import queue_words as queue_words
    from uge_core.dashboard.queue import reading as reading
    from uge_core.dashboard.queue import removal as removal
    from uge_core.dashboard.queue import resume as resume
    from uge_core.dashboard.retrain import named_scenario as named_scenario
    from uge_core.dashboard.retrain import retrain as retrain
    from uge_core.dashboard.retrain import retrain_offer as retrain_offer
    from uge_core.dashboard.retrain import retrained as retrained
    from uge_core.dashboard.retrain import retraining as retraining
    from uge_core.dashboard.startup import warm_up as warm_up
    from uge_core.dashboard.training_form import enqueue as enqueue
    from uge_core.dashboard.training_form import estimate as estimate
    from uge_core.dashboard.training_form import training_form as training_form
    from uge_core.dashboard.web import answer_at_once as answer_at_once
    from uge_core.dashboard.web import web_routes as web_routes
    from uge_core.dashboard.whatif import whatif_compare as whatif_compare
    from uge_core.dashboard.whatif import whatif_delete as whatif_delete
    from uge_core.dashboard.whatif import whatif_edit as whatif_edit
    from uge_core.dashboard.whatif import whatif_ego as whatif_ego
    from uge_core.dashboard.whatif import whatif_find as whatif_find
    from uge_core.dashboard.whatif import whatif_graph as whatif_graph
    from uge_core.dashboard.whatif import whatif_judge as whatif_judge
    from uge_core.dashboard.whatif import whatif_of_runs as whatif_of_runs
    from uge_core.dashboard.whatif import whatif_retrained as whatif_retrained
    from uge_core.dashboard.whatif import whatif_save as whatif_save
    from uge_core.dashboard.whatif import whatif_stored as whatif_stored
    from uge_core.dashboard.whatif import whatif_warm as whatif_warm
    from uge_core.datasets.mapping import TableMap as TableMap
    from uge_core.datasets.mapping import TablePair as TablePair
    from uge_core.datasets.mapping import Use as Use
    from uge_core.datasets.mapping import begin_mapping as begin_mapping
    from uge_core.datasets.mapping import card_text as card_text
    from uge_core.datasets.mapping import codes_text as codes_text
    from uge_core.datasets.mapping import column_examples as column_examples
    from uge_core.datasets.mapping import join_counts as join_counts
    from uge_core.datasets.mapping import mapping_folder as mapping_folder
    from uge_core.datasets.mapping import missing_codes as missing_codes
    from uge_core.datasets.mapping import read_pair as read_pair
    from uge_core.datasets.mapping import readable_files as readable_files
    from uge_core.datasets.mapping import with_columns as with_columns
    from uge_core.datasets.mapping import write_card as write_card
    from uge_core.datasets.mapping import written_mapping as written_mapping
    from uge_core.datasets.stamp import data_stamp as data_stamp
    from uge_core.errors import NotReadYet as NotReadYet
    from uge_core.errors import NotRecognised as NotRecognised
    from uge_core.errors import UgeError as UgeError
    from uge_core.explore.whatif.scenario import Scenario as Scenario
    from uge_core.runs.sample_audit import first_start as first_start
    from uge_core.runs.store import RunStore as RunStore
    from uge_core.runs.uploads import LARGEST_MB as LARGEST_MB
    from uge_core.runs.uploads import list_uploads as list_uploads
    from uge_core.runs.uploads import remove_upload as remove_upload
    from uge_core.runs.uploads import save_upload as save_upload
    from uge_core.runs.uploads import stands_alone as stands_alone
    from uge_core.runs.uploads import upload_removal as upload_removal
    from uge_core.runs.uploads import uploads_folder as uploads_folder
    from uge_core.views.comparison import comparison_view as comparison_view
    from uge_core.views.data import DataView as DataView
    from uge_core.views.data import data_view as data_view
    from uge_core.views.data import groups_csv as groups_csv
    from uge_core.views.data import groups_view as groups_view
    from uge_core.views.data import known_graphs as known_graphs
    from uge_core.views.data import mixing_view as mixing_view
    from uge_core.views.data import weights_view as weights_view
    from uge_core.views.fairness import GapView as GapView
    from uge_core.views.fairness import fairness_view as fairness_view
    from uge_core.views.fairness import gap_forms as gap_forms
    from uge_core.views.fairness import ranked_cells as ranked_cells
    from uge_core.views.figures.data import groups_figure as groups_figure
    from uge_core.views.figures.data import mixing_map as mixing_map
    from uge_core.views.figures.data import weights_figure as weights_figure
    from uge_core.views.figures.ego import ego_figure as ego_figure
    from uge_core.views.figures.gaps import gap_bars as gap_bars
    from uge_core.views.figures.gaps import gap_map as gap_map
    from uge_core.views.figures.leakage import CHART_CONFIG as CHART_CONFIG
    from uge_core.views.figures.leakage import leakage_figure as leakage_figure
    from uge_core.views.figures.light import gap_light as gap_light
    from uge_core.views.figures.light import leakage_light as leakage_light
    from uge_core.views.figures.losses import loss_figure as loss_figure
    from uge_core.views.figures.projection import PROJECTION_CONFIG as PROJECTION_CONFIG
    from uge_core.views.figures.projection import projection_alt as projection_alt
    from uge_core.views.figures.projection import projection_figure as projection_figure
    from uge_core.views.figures.tradeoff import ring_style as ring_style
    from uge_core.views.figures.tradeoff import tradeoff_figure as tradeoff_figure
    from uge_core.views.frame import frame as frame
    from uge_core.views.leakage import leakage_choices as leakage_choices
    from uge_core.views.leakage import leakage_view as leakage_view
    from uge_core.views.live import live_assets as live_assets
    from uge_core.views.live import live_data as live_data
    from uge_core.views.method import method_page as method_page
    from uge_core.views.method import metric_help as metric_help
    from uge_core.views.overview import overview as overview
    from uge_core.views.projection import CONFIDENCE_NOTE as CONFIDENCE_NOTE
    from uge_core.views.projection import ProjectionView as ProjectionView
    from uge_core.views.projection import colour_choices as colour_choices
    from uge_core.views.projection import colouring as colouring
    from uge_core.views.projection import full_space as full_space
    from uge_core.views.projection import projection_data as projection_data
    from uge_core.views.projection import projection_methods as projection_methods
    from uge_core.views.projection import projection_sizes as projection_sizes
    from uge_core.views.projection import projection_view as projection_view
    from uge_core.views.projection import selected_groups as selected_groups
    from uge_core.views.projection import selected_ids as selected_ids
    from uge_core.views.projection import selection_view as selection_view
    from uge_core.views.projection import slow_projections as slow_projections
    from uge_core.views.report import Sheet as Sheet
    from uge_core.views.report import browser as browser
    from uge_core.views.report import contents as contents
    from uge_core.views.tradeoff import QUALITIES as QUALITIES
    from uge_core.views.tradeoff import TRADEOFF_METRICS as TRADEOFF_METRICS
    from uge_core.views.tradeoff import TradeoffView as TradeoffView
    from uge_core.views.tradeoff import lambda_view as lambda_view
    from uge_core.views.tradeoff import tradeoff_view as tradeoff_view
    from uge_core.views.whatif import TIER_WORDS as TIER_WORDS
    from uge_core.views.whatif import JudgedView as JudgedView
    from uge_core.views.whatif import whatif_attackers as whatif_attackers
    from uge_core.views.words import plain_text as plain_text

__all__ = lazily(__name__)
